"""Keeps PyArrow from importing pandas, in processes that live for one command.

The first array that PyArrow makes imports pandas, to see whether it is given a Series. That takes longer than
most commands. Spark may need pandas, so it is found again before Spark starts.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Hidden(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the signature of finders
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden in this process", name=fullname)
        return None


def hide_pandas() -> None:
    """Let imports of pandas fail from now on."""
    sys.meta_path.insert(0, _Hidden())


def find_pandas() -> None:
    """Let imports of pandas succeed again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Hidden)]
