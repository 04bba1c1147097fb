"""HEAD as the store holds it, unpacked from its bytes alone: a whole state, and the steps since."""

import json
import re
from collections.abc import Mapping
from typing import Any

PAST = re.compile(r"^_lakevilla/global/heads/(?P<seq>\d+)\.json$")


class Heads:
    """Unpacks HEADs in the order in which they were written; `put_aside` are the states that some of them
    are built on, by number."""

    def __init__(self) -> None:
        self.put_aside: dict[int, dict[str, Any]] = {}

    def see(self, key: str, data: bytes) -> bool:
        """Note an object of `heads/`; False for any other."""
        past = PAST.match(key)
        if past is None:
            return False
        self.put_aside[int(past["seq"])] = self.unpack(data)
        return True

    def unpack(self, data: bytes) -> dict[str, Any]:
        """The lake's id, number and state, whichever way they are written."""
        record = json.loads(data)
        base = record.get("base")
        if base is None:
            return dict(record)
        if set(base) == {"seq"}:
            base = self.put_aside[base["seq"]]
        state = {**base, "lake": record["lake"], "seq": record["seq"]}
        for step in record["steps"]:
            for part in ("tables", "versions", "tags"):
                state[part] = _after(state[part], step.get(part, {}))
            for part in ("dropped", "torn"):
                both = step.get(part, {"added": (), "removed": ()})
                state[part] = sorted((set(state[part]) - set(both["removed"])) | set(both["added"]))
            state["horizon"] = step.get("horizon", state.get("horizon", 0))
        return state


def _after(values: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**values, **changed}.items() if value is not None}
