"""A consumer that follows tables by `lake.changes`, and nothing else, and must arrive at their rows."""

from collections import Counter
from typing import Any

from lakevilla.errors import InvalidInput
from lakevilla.lake import Lake

WENT = ("delete", "update_preimage")


def check_followed(lake: Lake, tables: list[str], middle: float) -> list[str]:
    """Rebuild each table at the newest instant, in two steps by way of an instant in the middle. Every table
    is also compared with the lake at that instant."""
    entries = lake.history()[::-1]
    if not entries:
        return []
    between, last = entries[int(middle * (len(entries) - 1))].seq, entries[-1].seq
    rolled_back = {(entry.seq, entry.txn) for entry in entries if not entry.published}
    violations: list[str] = []
    for table in tables:
        rows: Counter[str] = Counter()
        since = None
        for until in (between, last):
            past = lake.at(seq=until)
            if table not in past.tables():
                continue
            try:
                changes = lake.changes(table, since, until).toArrow().to_pylist()
            except InvalidInput as error:
                # A table that was replaced or dropped meanwhile begins anew.
                violations.append(f"the changes of {table} up to entry {until} cannot be read: {error}")
                break
            for change in changes:
                shown = {name: value for name, value in change.items() if not name.startswith("_")}
                rows[_key(shown)] += -1 if change["_change_type"] in WENT else 1
                if (change["_commit_seq"], change["_transaction"]) in rolled_back:
                    violations.append(f"the changes of {table} show what was rolled back: {change}")
            found = Counter(map(_key, past.read(table).toArrow().to_pylist()))
            if rows != found and (rows - found or found - rows or min(rows.values(), default=0) < 0):
                violations.append(
                    f"the changes of {table} up to entry {until} lead to other rows: {rows - found} too "
                    f"many, {found - rows} too few"
                )
            since = until
    return violations


def _key(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))
