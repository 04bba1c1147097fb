"""What a remote store's answer means: obstore's exceptions turned into the port's words.

obstore names some failures by type and leaves the rest in its text: the HTTP status, and the error
code in the body. Texts are long and may hold a signed URL, so nothing of them leaves this file but the
status, the code, and a first line without the query.
"""

import re
from types import ModuleType
from typing import Any

from lakevilla.errors import LakeVillaError, Unavailable, Unsupported
from lakevilla.store.port import Unanswered

_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,80})</Code>")
_OUR_WORDS = ("Server returned", "<Code>", "Invalid range")
_QUERY = re.compile(r"\?\S*")
_TRANSIENT = frozenset({408, 409, 425, 429})
_LONGEST_LINE = 300


class Answer:
    """One failed request on a key, or on a folder for a listing, as far as obstore tells."""

    def __init__(self, failure: BaseException, key: str, exceptions: ModuleType | Any) -> None:
        text = str(failure).partition("\n\nDebug source:")[0]
        if any(words in key for words in _OUR_WORDS):
            # The text repeats the key, and this one reads like an answer.
            text = text.replace(key, "…")
        status = _STATUS.search(text)
        code = _CODE.search(text)
        self.status = int(status[1]) if status else 0
        self.code = code[1] if code else ""
        self.line = _QUERY.sub("", text.partition("\n")[0])[:_LONGEST_LINE]
        self._key = key
        self._failure = failure
        self._exceptions = exceptions

    @property
    def missing(self) -> bool:
        """There is no such object (but there is such a bucket)."""
        return isinstance(self._failure, FileNotFoundError) and not self._no_bucket

    @property
    def past_the_end(self) -> bool:
        """A range begins at or after the object's end."""
        return self.status == 416 or "Invalid range: Wanted range starting at" in self.line

    @property
    def exists(self) -> bool:
        """A create met an object.

        S3's 409 says that rivals met, not which one won; only Azure's 409 BlobAlreadyExists decides.
        """
        if not isinstance(self._failure, self._exceptions.AlreadyExistsError):
            return False
        return self.status != 409 or self.code == "BlobAlreadyExists"

    @property
    def changed(self) -> bool:
        """A replace met another object, or none."""
        if isinstance(self._failure, FileNotFoundError | self._exceptions.PreconditionError):
            return not self._no_bucket
        return False

    @property
    def refused(self) -> bool:
        """The credentials are not accepted, or are not enough."""
        kinds = (self._exceptions.PermissionDeniedError, self._exceptions.UnauthenticatedError)
        return isinstance(self._failure, kinds) or self.status in (401, 403) or self.code == "ExpiredToken"

    @property
    def _no_bucket(self) -> bool:
        return self.code in ("NoSuchBucket", "ContainerNotFound")

    def error(self, url: str, request: str) -> LakeVillaError | Unanswered:
        """What to raise when the answer is not a value."""
        said = self.code or (str(self.status) if self.status else "no answer")
        refused = f"{url} refuses the {request} of {self._key or '/'!r}"
        if self.refused:
            return Unavailable(f"{refused} ({said}): check the credentials and their permissions")
        if self._no_bucket or isinstance(self._failure, FileNotFoundError):
            return Unavailable(f"{url}: the bucket or container does not exist ({said}); check the URL")
        if self.status == 501 or isinstance(self._failure, self._exceptions.NotSupportedError):
            return Unsupported(f"{url} does not implement the {request} ({said}); LakeVilla needs it")
        if "URL scheme is not allowed" in str(self._failure) or "BadScheme" in str(self._failure):
            return Unavailable(f"{url}: the endpoint is plain http; allow it with AWS_ALLOW_HTTP=true")
        if "incorrectly configured region" in self.line:
            return Unavailable(f"{url} redirects to another endpoint: check the region and the endpoint")
        if 400 <= self.status < 500 and self.status not in _TRANSIENT and self.code != "RequestTimeout":
            return Unavailable(f"{refused} ({said}); a retry does not help")
        return Unanswered(f"{request} on {url}: {self.line}")
