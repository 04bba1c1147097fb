"""The Java on this machine: whether there is one that Spark runs on."""

import os
import re
import shutil
import subprocess

OLDEST = 17
_WANTED = (
    "Spark needs Java 17 or 21: install it, or let JAVA_HOME point to it. "
    "Without Java, open the lake with engine='local'."
)
_ANSWER_SECONDS = 30


def trouble(oldest: int = OLDEST, newest: int | None = None) -> str | None:
    """What is wrong with the Java that Spark would take, and what to do; None if nothing is."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        return f"Java was not found on this machine. {_WANTED}"
    if not os.path.exists(java):
        return f"Java was not found where JAVA_HOME points to ({home}). {_WANTED}"
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, check=True, timeout=_ANSWER_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"the Java on this machine does not start ({error}). {_WANTED}"
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', told.stderr)
    if found is None or (oldest <= int(found[2]) and (newest is None or int(found[2]) <= newest)):
        return None
    return f"the Java on this machine ({java}) is version {found[1]}. {_WANTED}"
