"""Reports as JSON."""

import json
from typing import Any


def print_json(value: Any) -> None:
    """A report for programs."""
    print(json.dumps(value, indent=2, default=str))
