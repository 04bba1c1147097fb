"""How a client that knows Iceberg and a catalog, and nothing of LakeVilla, writes a table of that catalog.

It asks for what PyIceberg asks for: that `main` is at the snapshot on which it built. Files, manifests and
snapshots are those of `legacy_iceberg`.
"""

import json
from typing import Any

from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.table import CommitTableRequest

from sim.checkers.tables.iceberg import State
from sim.legacy.iceberg import IcebergDialect, Raw
from sim.legacy.store import Encode, GaveUp, get
from sim.world.catalogs import catalog_of, folder_of, key_of, number_of, pointer_key
from sim.world.client import Client


class CatalogedDialect(IcebergDialect):
    """See `legacy.Dialect`. An entry is the metadata that it would have by files."""

    first = 0

    def __init__(self, client: Client, encode: Encode) -> None:
        super().__init__(client, encode)
        self._known: dict[tuple[str, int], str] = {}
        """Metadata files, by table and version."""

    def entry(self, root: str, version: int) -> bytes | None:
        """By the metadata log, from the pointer on."""
        if (root, version) not in self._known:
            location, raw = self._current(root)
            files = [entry["metadata-file"] for entry in raw.get("metadata-log") or ()]
            self._known |= {(root, number_of(file)): file for file in (*files, location)}
        location = self._known.get((root, version), "")
        found = get(self._client, key_of(location)) if location else None
        return None if found is None else found.data

    def newest(self, root: str) -> int:
        return number_of(self._current(root)[0])

    def make(self, root: str, version: int, entry: bytes) -> int | None:  # noqa: ARG002
        snapshot = json.loads(entry)["snapshots"][-1]
        parent = snapshot.get("parent-snapshot-id")
        return self._commit(
            root,
            [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}],
            [
                {"action": "add-snapshot", "snapshot": snapshot},
                {
                    "action": "set-snapshot-ref",
                    "ref-name": "main",
                    "type": "branch",
                    "snapshot-id": snapshot["snapshot-id"],
                },
            ],
        )

    def taken(self, root: str, version: int, entry: bytes) -> bool:  # noqa: ARG002
        parent = json.loads(entry)["snapshots"][-1].get("parent-snapshot-id")
        return bool(self._current(root)[1].get("current-snapshot-id") != parent)

    def made(self, root: str, version: int, entry: bytes) -> int | None:  # noqa: ARG002
        """The first version that has the snapshot."""
        wanted, found = json.loads(entry)["snapshots"][-1]["snapshot-id"], None
        location, raw = self._current(root)
        log = [each["metadata-file"] for each in raw.get("metadata-log") or ()]
        while any(each["snapshot-id"] == wanted for each in raw["snapshots"]):
            found, location = number_of(location), log.pop()
            raw = self._raw(location)
        return found

    def set_property(self, root: str, name: str) -> int | None:
        """The version in which the property is set. Nothing is asked for that could be refused."""
        while True:
            told = {"action": "set-properties", "updates": {"theirs": name}}
            made = self._commit(root, [], [told])
            if made is not None:
                return made

    def leave_hint(self, root: str, version: int) -> None:
        """A client that asks the catalog needs none."""

    def _commit(self, root: str, requirements: list[Any], updates: list[Any]) -> int | None:
        told = {
            "requirements": requirements,
            "updates": updates,
            "identifier": {"namespace": [], "name": root},
        }
        asked = CommitTableRequest.model_validate(told)
        try:
            done = catalog_of(self._client, root).commit(root, asked.requirements, asked.updates)
        except (CommitFailedException, BadRequestError):
            return None
        return number_of(done.metadata_location)

    def _current(self, root: str) -> tuple[str, Raw]:
        """Where the current metadata lies, and what it is."""
        catalog = self._client.formats.catalog_of(root)
        assert catalog is not None, f"{root} is in no catalog"
        pointer = get(self._client, pointer_key(catalog, root))
        if pointer is None:
            raise GaveUp(f"there is no table {root}")
        location = pointer.data.decode()
        return location, self._raw(location)

    def _raw(self, location: str) -> Raw:
        found = get(self._client, key_of(location))
        assert found is not None, "no client deletes metadata files here"
        raw: Raw = json.loads(found.data)
        return raw

    def _base(self, root: str, version: int) -> State:  # noqa: ARG002
        """Whatever is there: what was built on it says so."""
        return self._state(root, self._current(root)[1])

    def _state(self, root: str, raw: Raw) -> State:
        return super()._state(folder_of(root), raw)

    def _upload(self, root: str, *given: Any) -> Any:
        return super()._upload(folder_of(root), *given)

    def _next(self, root: str, *given: Any) -> bytes:
        return super()._next(folder_of(root), *given)
