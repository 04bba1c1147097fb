"""Arrays, structs and maps."""

import pyarrow as pa

from lakevilla.engines.local.translation.functions.scalars import (
    as_integer,
    as_text,
    boolean,
    function,
    integer,
    string,
)
from lakevilla.engines.local.translation.types.casts import cast
from lakevilla.engines.local.translation.types.coercion import common, common_type
from lakevilla.engines.local.translation.types.typed import (
    Typed,
    cast_sql,
    fails,
    identifier,
    is_list,
    list_of,
    mismatch,
    refuse,
)
from lakevilla.errors import InvalidInput
from lakevilla.sql.types import type_name


@function("array", arity=(0, -1))
def _array(*values: Typed) -> Typed:
    to = common_type(value.type for value in values) if values else pa.null()
    items = ", ".join(cast(value, to).sql for value in values)
    return Typed(cast_sql(f"[{items}]", list_of(to)), list_of(to))


def struct(names: list[str], values: list[Typed]) -> Typed:
    """struct(...) and named_struct(...)."""
    if len({name.lower() for name in names}) != len(names):
        refuse("a struct with two fields of one name")
    if not names:
        refuse("a struct without fields")
    fields = ", ".join(f"{identifier(n)} := {v.sql}" for n, v in zip(names, values, strict=True))
    to = pa.struct([pa.field(n, v.type) for n, v in zip(names, values, strict=True)])
    return Typed(f"struct_pack({fields})", to, aggregate=any(v.aggregate for v in values))


@function("map", arity=(0, -1))
def _map(*entries: Typed) -> Typed:
    if len(entries) % 2 or not entries:
        raise InvalidInput("map takes keys and values in turn")
    key_type = common_type(entry.type for entry in entries[::2])
    item_type = common_type(entry.type for entry in entries[1::2])
    if pa.types.is_null(key_type):
        raise InvalidInput("a key of a map cannot be NULL")
    keys = ", ".join(cast(key, key_type).sql for key in entries[::2])
    items = ", ".join(cast(item, item_type).sql for item in entries[1::2])
    to = pa.map_(key_type, pa.field("value", item_type))
    return Typed(cast_sql(f"map([{keys}], [{items}])", to), to)


@function("size", "cardinality", arity=(1, 1))
def _size(value: Typed) -> Typed:
    if pa.types.is_null(value.type):
        return integer("NULL")
    if pa.types.is_map(value.type):
        return integer(f"cardinality({value.sql})")
    return integer(f"len({_list(value, 'size')})")


@function("array_size", arity=(1, 1))
def _array_size(value: Typed) -> Typed:
    return integer(f"len({_list(value, 'array_size')})")


@function("array_contains", arity=(2, 2))
def _array_contains(array: Typed, value: Typed) -> Typed:
    """NULL if it is not found among known values but one is unknown."""
    if pa.types.is_null(value.type):
        mismatch("array_contains", array, value)
    _list(array, "array_contains")
    to = common(array.type.value_type, value.type)
    if to != array.type.value_type:
        array = cast(array, list_of(to))
    items, item = _list(array, "array_contains"), cast(value, to).sql
    return boolean(
        f"CASE WHEN {items} IS NULL OR {item} IS NULL THEN NULL "
        f"WHEN list_contains({items}, {item}) THEN TRUE "
        f"WHEN list_count({items}) < len({items}) THEN NULL ELSE FALSE END"
    )


def element(value: Typed, index: Typed) -> Typed:
    """`array[i]` from 0 and `map[key]`: beyond an array's end is an error, a missing key is NULL."""
    if pa.types.is_map(value.type):
        return _entry(value, index)
    items, at = _list(value, "[]"), as_integer(index, "[]")
    outside = fails("the index is beyond the array; use get() to get NULL instead")
    return Typed(
        f"CASE WHEN {at} < 0 OR {at} >= len({items}) THEN {outside} ELSE {items}[{at} + 1] END",
        value.type.value_type,
        aggregate=value.aggregate or index.aggregate,
    )


@function("get", arity=(2, 2))
def _get(array: Typed, index: Typed) -> Typed:
    items, at = _list(array, "get"), as_integer(index, "get")
    return Typed(f"CASE WHEN {at} >= 0 THEN {items}[{at} + 1] END", array.type.value_type)


@function("element_at", arity=(2, 2))
def _element_at(value: Typed, index: Typed) -> Typed:
    if pa.types.is_map(value.type):
        return _entry(value, index)
    items, at = _list(value, "element_at"), as_integer(index, "element_at")
    outside = fails("the index is beyond the array; use try_element_at to get NULL instead")
    beyond = f"{at} = 0 OR abs({at}) > len({items})"
    return Typed(f"CASE WHEN {beyond} THEN {outside} ELSE {items}[{at}] END", value.type.value_type)


@function("try_element_at", arity=(2, 2))
def _try_element_at(value: Typed, index: Typed) -> Typed:
    if pa.types.is_map(value.type):
        return _entry(value, index)
    items, at = _list(value, "try_element_at"), as_integer(index, "try_element_at")
    zero = fails("elements are counted from 1")
    return Typed(f"CASE WHEN {at} = 0 THEN {zero} ELSE {items}[{at}] END", value.type.value_type)


def _entry(value: Typed, key: Typed) -> Typed:
    to = value.type.key_type
    if common(to, key.type) != to:
        refuse(f"a key of type {type_name(key.type)} for {type_name(value.type)}")
    sql = f"{value.sql}[{cast(key, to).sql}]"
    return Typed(sql, value.type.item_type, aggregate=value.aggregate or key.aggregate)


@function("map_keys", arity=(1, 1))
def _map_keys(value: Typed) -> Typed:
    return Typed(f"map_keys({_entries(value, 'map_keys')})", list_of(value.type.key_type))


@function("map_values", arity=(1, 1))
def _map_values(value: Typed) -> Typed:
    return Typed(f"map_values({_entries(value, 'map_values')})", list_of(value.type.item_type))


@function("map_contains_key", arity=(2, 2))
def _map_contains_key(value: Typed, key: Typed) -> Typed:
    entries = _entries(value, "map_contains_key")
    if common(value.type.key_type, key.type) != value.type.key_type:
        refuse(f"a key of type {type_name(key.type)} for {type_name(value.type)}")
    return boolean(f"list_contains(map_keys({entries}), {cast(key, value.type.key_type).sql})")


@function("sort_array", arity=(1, 2))
def _sort_array(array: Typed, ascending: Typed | None = None) -> Typed:
    up = True if ascending is None else ascending.constant
    if not isinstance(up, bool):
        refuse("sort_array whose direction is not a literal")
    if is_list(array.type) and pa.types.is_nested(array.type.value_type):
        refuse(f"sort_array of {type_name(array.type)}")
    order = "'ASC', 'NULLS FIRST'" if up else "'DESC', 'NULLS LAST'"
    return Typed(f"list_sort({_list(array, 'sort_array')}, {order})", array.type)


@function("array_max", arity=(1, 1))
def _array_max(array: Typed) -> Typed:
    return _extreme("list_max", array)


@function("array_min", arity=(1, 1))
def _array_min(array: Typed) -> Typed:
    return _extreme("list_min", array)


def _extreme(name: str, array: Typed) -> Typed:
    items = _list(array, name)
    if pa.types.is_nested(array.type.value_type):
        refuse(f"the largest and smallest of {type_name(array.type)}")
    return Typed(f"{name}({items})", array.type.value_type)


@function("array_join", arity=(2, 2))
def _array_join(array: Typed, separator: Typed) -> Typed:
    items = _list(array, "array_join")
    as_text(Typed(items, array.type.value_type), "array_join")
    joined = f"array_to_string({items}, {as_text(separator, 'array_join')})"
    return string(f"CASE WHEN {items} IS NOT NULL THEN coalesce({joined}, '') END")


@function("flatten", arity=(1, 1))
def _flatten(array: Typed) -> Typed:
    items = _list(array, "flatten")
    if not is_list(array.type.value_type):
        mismatch("flatten", array)
    # One NULL among the arrays makes the whole NULL.
    return Typed(
        f"CASE WHEN list_count({items}) = len({items}) THEN flatten({items}) END", array.type.value_type
    )


def _list(value: Typed, name: str) -> str:
    if not is_list(value.type):
        mismatch(name, value)
    return value.sql


def _entries(value: Typed, name: str) -> str:
    if not pa.types.is_map(value.type):
        mismatch(name, value)
    return value.sql
