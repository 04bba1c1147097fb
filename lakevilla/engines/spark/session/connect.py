"""Spark Connect: the session lives in a server, to which every use of a DataFrame sends its whole plan.

Texts are analysed anew with each of them, so a view that is dropped is missed by frames over it. Hence no
views here: a text travels with the frames that it reads.
"""

from collections.abc import Mapping
from typing import Any


def is_connect(session: Any) -> bool:
    """Whether the session is a client of a server, without a local JVM."""
    return not hasattr(session, "_jsparkSession")


def sql(session: Any, text: str, frames: Mapping[str, Any]) -> Any:
    """The text as a DataFrame, where names stand for these frames. Names are unlike anything else in it."""
    used = {name: frame for name, frame in frames.items() if name in text}
    # PySpark puts frames where braces are; those of the text itself are doubled.
    template = text.replace("{", "{{").replace("}", "}}") if used else text
    for name in used:
        template = template.replace(name, f"{{{name}}}")
    return session.sql(template, **used)
