"""Names: which relations and columns a piece of SQL can see, and what a name means.

Spark's order: a name behind a qualifier, then a column (and fields of structs after it), then an alias of
the same SELECT list, then the query around. Case does not matter. Two candidates are an error.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from lakevilla.engines.local.translation.types.typed import Typed, is_list, list_of, text
from lakevilla.errors import InvalidInput
from lakevilla.predicates import Predicate
from lakevilla.sql.words.suggestions import unknown_column


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a relation: the user's name, ours, and its type."""

    name: str
    sql: str
    type: pa.DataType


@dataclass
class Reference:
    """One place where a statement reads a table: what it needs of it is found while translating.

    `columns` maps the table's columns to our names; `used` are those that the statement touches, and
    `predicates` what the rows must satisfy to matter.
    """

    key: str
    sql: str
    schema: pa.Schema
    columns: dict[str, str]
    used: set[str] = field(default_factory=set)
    predicates: list[Predicate] = field(default_factory=list)

    @property
    def needed(self) -> list[str]:
        """The columns to read, in the table's order: one, if it is only the number of rows that counts."""
        used = [name for name in self.schema.names if name in self.used]
        flat = [field.name for field in self.schema if not pa.types.is_nested(field.type)]
        return used or (flat or self.schema.names)[:1]

    @property
    def source_sql(self) -> str:
        """What stands in FROM for this table.

        DuckDB hands filters on an Arrow scan to Arrow, to which NaN is less than nothing. A relation
        with an OFFSET keeps its filters, so floats get one.
        """
        if any(_holds_float(self.schema.field(name).type) for name in self.needed):
            return f"(SELECT * FROM {self.sql} OFFSET 0) AS {self.sql}"
        return self.sql


def placeholder(name: str) -> str:
    """Stands for a table until it is known which columns are read; no text of a user holds a NUL."""
    return f"\0{name}\0"


def _holds_float(data_type: pa.DataType) -> bool:
    if pa.types.is_floating(data_type):
        return True
    return any(_holds_float(data_type.field(i).type) for i in range(data_type.num_fields))


@dataclass
class Relation:
    """Something in a FROM clause. `names` are the qualifiers that reach it, each as its parts."""

    sql: str
    names: tuple[tuple[str, ...], ...]
    outputs: list[Output]
    reference: Reference | None = None
    hidden: set[str] = field(default_factory=set)

    def find(self, name: str, qualified: bool) -> list[Output]:
        """The columns of this name; those merged by USING are found only behind a qualifier."""
        lower = name.lower()
        if not qualified and lower in self.hidden:
            return []
        return [output for output in self.outputs if output.name.lower() == lower]

    def column(self, output: Output) -> Typed:
        if self.reference is not None:
            self.reference.used.add(output.name)
        return Typed(f"{self.sql}.{output.sql}", output.type)


@dataclass
class Common:
    """A common table expression."""

    sql: str
    outputs: list[Output]


@dataclass
class Scope:
    """What an expression can see."""

    relations: list[Relation] = field(default_factory=list)
    merged: list[tuple[str, Typed]] = field(default_factory=list)
    aliases: dict[str, Typed] = field(default_factory=dict)
    variables: dict[str, Typed] = field(default_factory=dict)
    common: dict[str, Common] = field(default_factory=dict)
    outer: "Scope | None" = None

    def resolve(self, parts: list[str]) -> Typed:
        """The expression that a name stands for; InvalidInput if there is none, or two."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._here(parts)
            if found is not None:
                return found
            scope = scope.outer
        raise unknown_column(".".join(parts), self._names())

    def star(self, qualifier: list[str] | None) -> Iterator[tuple[str, Typed]]:
        """The columns of `*` or `qualifier.*`, with their names."""
        if qualifier is None:
            yield from self.merged
        relations = self.relations if qualifier is None else self._qualified(qualifier)
        for relation in relations:
            for output in relation.outputs:
                if qualifier is not None or output.name.lower() not in relation.hidden:
                    yield output.name, relation.column(output)

    def locate(self, parts: list[str]) -> tuple[Relation, Output, list[str]] | None:
        """The column of a relation of this very scope that a name means, and the fields after it."""
        if parts[0].lower() in self.variables:
            return None
        for length in range(len(parts) - 1, 0, -1):
            found = [
                (relation, output)
                for relation in self._qualified(parts[:length])
                for output in relation.find(parts[length], qualified=True)
            ]
            if found:
                return (*_only(found, parts), parts[length + 1 :])
        if any(name.lower() == parts[0].lower() for name, _ in self.merged):
            return None
        found = [
            (relation, output)
            for relation in self.relations
            for output in relation.find(parts[0], qualified=False)
        ]
        return (*_only(found, parts), parts[1:]) if found else None

    def _here(self, parts: list[str]) -> Typed | None:
        first, rest = parts[0].lower(), parts[1:]
        if first in self.variables:
            return follow(self.variables[first], rest)
        located = self.locate(parts)
        if located is not None:
            relation, output, fields = located
            return follow(relation.column(output), fields)
        merged = [typed for name, typed in self.merged if name.lower() == first]
        if merged:
            return follow(merged[0], rest)
        alias = self.aliases.get(first)
        return None if alias is None else follow(alias, rest)

    def _qualified(self, qualifier: list[str]) -> list[Relation]:
        wanted = tuple(part.lower() for part in qualifier)
        return [r for r in self.relations if any(_ends(name, wanted) for name in r.names)]

    def _names(self) -> list[str]:
        return list(dict.fromkeys(o.name for relation in self.relations for o in relation.outputs))


def follow(value: Typed, fields: list[str]) -> Typed:
    """`value.field.field`: fields of structs, and of the structs in an array, as Spark has it."""
    for name in fields:
        data_type = value.type
        if is_list(data_type) and pa.types.is_struct(data_type.value_type):
            inner = follow(Typed("e", data_type.value_type), [name])
            sql = f"list_transform({value.sql}, lambda e: {inner.sql})"
            value = Typed(sql, list_of(inner.type), aggregate=value.aggregate)
            continue
        if not pa.types.is_struct(data_type):
            raise InvalidInput(f"cannot read field {name!r}: the value before it is not a struct")
        matching = [child for child in data_type if child.name.lower() == name.lower()]
        if len(matching) != 1:
            raise InvalidInput(f"unknown or ambiguous field {name!r} of a struct")
        sql = f"({value.sql})[{text(matching[0].name)}]"
        value = Typed(sql, matching[0].type, aggregate=value.aggregate)
    return value


def renamed(outputs: list[Output], alias: exp.Expr | None) -> list[Output]:
    """The columns under the names of an alias `AS t(a, b)`."""
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not columns:
        return outputs
    if len(columns) != len(outputs):
        raise InvalidInput(f"the alias names {len(columns)} columns, but the query has {len(outputs)}")
    return [replace(output, name=column.name) for output, column in zip(outputs, columns, strict=True)]


def _only(found: list[tuple[Relation, Output]], parts: list[str]) -> tuple[Relation, Output]:
    if len(found) > 1:
        raise InvalidInput(
            f"column {'.'.join(parts)!r} is ambiguous: write the table before it", column=".".join(parts)
        )
    return found[0]


def _ends(name: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """`t.x` reaches the table db.t, `db.t.x` too."""
    return len(wanted) <= len(name) and tuple(part.lower() for part in name[-len(wanted) :]) == wanted
