"""`storage_options`: the names that delta-rs and obstore share, sorted for obstore's constructors.

Names are compared without case, with or without their cloud's prefix (`AWS_REGION`, `aws_region`,
`region`). Options of another cloud are left aside, so that one dictionary can serve a lake and a table
elsewhere. An unknown name is an error: a misspelt option must not be silently ignored. Values
may be secrets, so no message repeats one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakevilla.errors import InvalidInput

CONNECT_TIMEOUT = "5s"
# Whole requests. Large puts are sent in parts of 5 MB, each a request of its own.
REQUEST_TIMEOUT = "30s"

_CLOUDS = {"s3": "aws_", "gs": "google_", "az": "azure_"}
_CLIENT = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "http1_only",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)
_DIRECTORY = frozenset({"fsync"})
# delta-rs wants it where it would rename; we never do.
_NEEDLESS = frozenset({"aws_s3_allow_unsafe_rename", "s3_allow_unsafe_rename"})

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


@dataclass(frozen=True)
class Options:
    """What a store is opened with; never shown, because values may be secrets."""

    config: dict[str, str] = field(default_factory=dict, repr=False)
    client: dict[str, str] = field(default_factory=dict, repr=False)
    fsync: bool = True

    def hide(self, text: str) -> str:
        """The text without any of the values."""
        for value in sorted((*self.config.values(), *self.client.values()), key=len, reverse=True):
            text = text.replace(value, "…") if len(value) > 2 else text
        return text


def sort_options(scheme: str, storage_options: Mapping[str, object] | None) -> Options:
    """The options for a store of this scheme (`s3`, `gs`, `az`, `file` or `memory`)."""
    ours = _CLOUDS.get(scheme, "")
    config: dict[str, str] = {}
    client = {"connect_timeout": CONNECT_TIMEOUT, "timeout": REQUEST_TIMEOUT}
    fsync = True
    for given, value in (storage_options or {}).items():
        name = given.lower()
        prefix = next((known for known in _CLOUDS.values() if name.startswith(known)), "")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if name in _DIRECTORY:
            fsync = _boolean(given, text)
        elif name in _NEEDLESS or prefix not in ("", ours):
            continue
        elif not ours:
            raise unknown(given)
        elif name.removeprefix(prefix) in _CLIENT:
            client[name.removeprefix(prefix)] = text
        else:
            config[name] = text
    return Options(config, client, fsync)


def unknown(name: str) -> InvalidInput:
    """The error for an option that this kind of store does not have."""
    return InvalidInput(
        f"storage_options: unknown option {name!r} for this kind of store; check its spelling"
    )


def _boolean(name: str, text: str) -> bool:
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    raise InvalidInput(f"storage_options: {name!r} must be 'true' or 'false'")
