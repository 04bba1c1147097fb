"""Where files lie, in the words of Spark's Hadoop layer and of tasks that open a store themselves.

A live store cannot travel to an executor; its URL and options can. Options may be secrets: they reach Spark
as options of a single read and tasks as part of their code, never the session's settings, a log or the
lake.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from lakevilla.environment import SystemEnvironment
from lakevilla.errors import Unsupported
from lakevilla.store.open import open_store
from lakevilla.store.port import Store

_FROM_ENVIRONMENT = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
)
_PROVIDERS = "org.apache.hadoop.fs.s3a."


@dataclass(frozen=True)
class Access:
    """How the lake's stores are opened, here and in tasks."""

    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: Callable[..., Any] | None = field(default=None, repr=False)

    def open(self, url: str) -> Store:
        return open_store(url, self.options, SystemEnvironment(), self.credentials)

    def hadoop_options(self) -> dict[str, str]:
        """The options of S3 as Hadoop's s3a names them, for one read."""
        named = {name: os.environ[name] for name in _FROM_ENVIRONMENT if name in os.environ}
        given = {**named, **self.options}
        known = {name.lower().removeprefix("aws_"): str(value) for name, value in given.items()}
        if self.credentials is not None:
            fresh = self.credentials()
            known |= {k: str(v) for k, v in fresh.items() if k in ("access_key_id", "secret_access_key")}
            known["session_token"] = str(fresh.get("token") or "")
        return _s3a(known)


def hadoop_path(store: Store, key: str) -> str:
    """The path of an object as Hadoop spells it: not escaped, with its own scheme for S3."""
    scheme, _, rest = store.url.partition("://")
    if scheme == "file":
        return f"file:{unquote(rest)}/{key}"
    refuse_memory(store)
    return f"{'s3a' if scheme == 's3' else scheme}://{rest}/{key}"


def refuse_memory(store: Store) -> None:
    """Unsupported for a store in this process's memory, which Spark cannot reach."""
    if store.url.startswith("memory:"):
        raise Unsupported(
            "Spark cannot reach a lake in memory: use a directory or a bucket, or engine='local'"
        )


def _s3a(known: Mapping[str, str]) -> dict[str, str]:
    options = {}
    endpoint = known.get("endpoint_url") or known.get("endpoint")
    if endpoint:
        options["fs.s3a.endpoint"] = endpoint
        options["fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    if region := known.get("region") or known.get("default_region"):
        options["fs.s3a.endpoint.region"] = region
    if known.get("virtual_hosted_style_request", "false").lower() != "true":
        options["fs.s3a.path.style.access"] = "true"
    if known.get("skip_signature", "false").lower() == "true":
        options["fs.s3a.aws.credentials.provider"] = _PROVIDERS + "AnonymousAWSCredentialsProvider"
    elif "access_key_id" in known and "secret_access_key" in known:
        options["fs.s3a.access.key"] = known["access_key_id"]
        options["fs.s3a.secret.key"] = known["secret_access_key"]
        token = known.get("session_token") or known.get("token")
        kind = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
        options["fs.s3a.aws.credentials.provider"] = _PROVIDERS + kind
        if token:
            options["fs.s3a.session.token"] = token
    return options
