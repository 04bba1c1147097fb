"""A few texts are read one by one, many by Arrow: both must find the same."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakevilla.formats.delta.files.statistics_json import parse_texts

MANY = 100


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (pa.int64(), "-9223372036854775808"),
        (pa.int32(), "7"),
        (pa.float64(), "1.25"),
        (pa.float64(), "1"),
        (pa.float64(), "1e300"),
        (pa.float32(), "0.1"),
        (pa.decimal128(18, 2), "12.30"),
        (pa.decimal128(38, 18), "12345678901234567890.123456789012345678"),
        (pa.string(), '"owner \\u00e9 \\"x\\""'),
        (pa.bool_(), "true"),
        (pa.date32(), '"2024-02-29"'),
        (pa.timestamp("us", "UTC"), '"2024-02-29T12:34:56.789Z"'),
        (pa.timestamp("us"), '"2024-02-29T12:34:56.789"'),
        (pa.int64(), "null"),
    ],
    ids=str,
)
def test_bound_is_the_same_in_few_texts_and_in_many(data_type: pa.DataType, value: str) -> None:
    text = f'{{"numRecords":3,"minValues":{{"a":{{"b":{value}}},"other":1}},"extra":[1]}}'
    wanted = {("numRecords",): pa.int64(), ("minValues", "a", "b"): data_type}

    few = parse_texts(pa.array([text]), wanted)
    many = parse_texts(pa.array([text] * MANY), wanted)

    assert few.type == many.type
    assert few.to_pylist() == many.to_pylist()[:1]


@pytest.mark.parametrize("text", [None, "{}", '{"numRecords":1}'])
def test_absent_statistics_are_null_in_few_texts_and_in_many(text: str | None) -> None:
    wanted = {("numRecords",): pa.int64(), ("minValues", "a"): pa.int64()}

    few = parse_texts(pa.array([text], pa.string()), wanted)
    many = parse_texts(pa.array([text] * MANY, pa.string()), wanted)

    for path in ("numRecords", "minValues"):
        alone = pc.struct_field(few, path).to_pylist()
        assert alone == pc.struct_field(many, path).to_pylist()[:1]


def test_unreadable_text_is_null_among_others_that_are_not() -> None:
    found = parse_texts(pa.array(["{", '{"numRecords":1}']), {("numRecords",): pa.int64()})

    assert pc.struct_field(found, "numRecords").to_pylist() == [None, 1]


@pytest.mark.parametrize(
    "odd",
    [
        "null",
        " null",
        "null{}",
        "",
        "  ",
        "[]",
        '"x"',
        '{"numRecords":7}\n{"numRecords":8}',
        '{"numRecords":7}{"numRecords":8}',
        '{"numRecords":7}\nnull',
        '{"numRecords":7',
        '"numRecords":7}',
        "{}\r{}",
    ],
    ids=repr,
)
@pytest.mark.parametrize("place", [0, 50, MANY - 1])
def test_text_that_is_not_one_object_has_no_statistics_and_leaves_the_others_alone(
    odd: str, place: int
) -> None:
    texts = [f'{{"numRecords":{number}}}' for number in range(MANY)]
    texts[place] = odd
    # Where one text makes two rows another must not make up for it by making none.
    texts[(place + 1) % MANY] = ""

    found = parse_texts(pa.array(texts), {("numRecords",): pa.int64()})

    wanted: list[int | None] = list(range(MANY))
    wanted[place] = wanted[(place + 1) % MANY] = None
    assert pc.struct_field(found, "numRecords").to_pylist() == wanted


def test_text_over_several_lines_is_read() -> None:
    texts = ['{\n "numRecords" : 7\n}'] * MANY

    found = parse_texts(pa.array(texts), {("numRecords",): pa.int64()})

    assert pc.struct_field(found, "numRecords").to_pylist() == [7] * MANY
