"""Spark's type names and the Arrow types that stand for them, in both directions.

One Arrow type per Spark type: `string` is utf8, `timestamp` is microseconds in UTC, `timestamp_ntz` is
microseconds without a zone. Types that Spark has and tables here cannot hold are refused by name.
"""

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from lakevilla.errors import InvalidInput, Unsupported
from lakevilla.sql.dialect import DIALECT

TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_SIMPLE: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: pa.bool_(),
    exp.DType.TINYINT: pa.int8(),
    exp.DType.SMALLINT: pa.int16(),
    exp.DType.INT: pa.int32(),
    exp.DType.BIGINT: pa.int64(),
    exp.DType.FLOAT: pa.float32(),
    exp.DType.DOUBLE: pa.float64(),
    exp.DType.TEXT: pa.string(),
    exp.DType.BINARY: pa.binary(),
    exp.DType.DATE: pa.date32(),
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}

_NAMES: dict[pa.DataType, str] = {
    pa.null(): "void",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.uuid(): "uuid",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
}


def arrow_type(data_type: exp.DataType) -> pa.DataType:
    """The Arrow type of a parsed Spark type."""
    kind = data_type.this
    parameters = data_type.expressions
    if data_type.args.get("collate"):
        raise Unsupported("a type with COLLATE is not supported: strings are compared by their bytes")
    if kind in _SIMPLE and not parameters:
        return _SIMPLE[kind]
    if kind == exp.DType.DECIMAL:
        return _decimal([int(parameter.name) for parameter in parameters])
    if kind == exp.DType.ARRAY and len(parameters) == 1:
        return pa.list_(pa.field("element", arrow_type(parameters[0])))
    if kind == exp.DType.MAP and len(parameters) == 2:
        return pa.map_(arrow_type(parameters[0]), pa.field("value", arrow_type(parameters[1])))
    if kind == exp.DType.STRUCT and parameters:
        return pa.struct([field_of(column) for column in parameters])
    raise Unsupported(f"the type {data_type.sql(dialect=DIALECT)} is not supported; see the list of types")


def field_of(column: exp.Expr) -> pa.Field:
    """The field of a column definition, top level or in a struct: name, type, NOT NULL, comment."""
    if not isinstance(column, exp.ColumnDef) or not isinstance(column.args.get("kind"), exp.DataType):
        raise InvalidInput(f"expected a column and its type, found {column.sql(dialect=DIALECT)}")
    nullable, metadata = True, {}
    for constraint in column.args.get("constraints") or []:
        match constraint.kind:
            case exp.NotNullColumnConstraint() as rule:
                nullable = bool(rule.args.get("allow_null"))
            case exp.CommentColumnConstraint() as comment:
                metadata[b"comment"] = comment.this.name.encode()
            case other:
                raise Unsupported(
                    f"column {column.name}: {other.sql(dialect=DIALECT)} is not supported", column=column.name
                )
    return pa.field(column.name, arrow_type(column.args["kind"]), nullable, metadata or None)


def type_named(text: str) -> pa.DataType:
    """The Arrow type of a type written in Spark SQL, such as `decimal(10,2)` or `array<int>`."""
    try:
        parsed = exp.DataType.build(text, dialect=DIALECT)
    except (ParseError, TokenError, ValueError) as error:
        raise InvalidInput(f"{text!r} is not a type of Spark SQL") from error
    return arrow_type(parsed)


def type_name(data_type: pa.DataType) -> str:
    """The type as Spark writes it in DDL and in `simpleString`."""
    if data_type in _NAMES:
        return _NAMES[data_type]
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_timestamp(data_type):
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    if pa.types.is_fixed_size_binary(data_type):
        return f"fixed({data_type.byte_width})"
    if pa.types.is_map(data_type):
        return f"map<{type_name(data_type.key_type)},{type_name(data_type.item_type)}>"
    if pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        return f"array<{type_name(data_type.value_type)}>"
    if pa.types.is_struct(data_type):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in data_type)}>"
    raise Unsupported(f"the Arrow type {data_type} has no counterpart in Spark SQL")


def _decimal(parameters: list[int]) -> pa.DataType:
    precision, scale = (*parameters, 0)[:2] if parameters else (10, 0)
    if not 0 < precision <= 38 or not 0 <= scale <= precision:
        raise InvalidInput(f"decimal({precision},{scale}): precision is 1 to 38, scale at most the precision")
    return pa.decimal128(precision, scale)
