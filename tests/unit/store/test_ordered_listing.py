"""Listings from stores that order folder by folder come out in the order of whole keys."""

from hypothesis import given
from hypothesis import strategies as st

from lakevilla.store.adapters.ordered_listing import in_key_order, just_below
from lakevilla.store.port import Meta

SEGMENT = st.text(alphabet="ab -./09zü".replace("/", ""), min_size=1, max_size=3)
KEYS = st.sets(st.lists(SEGMENT, min_size=1, max_size=3).map("/".join), max_size=30)


def by_folder(keys: set[str]) -> list[str]:
    """The order of SeaweedFS: one segment after the other."""
    return sorted(keys, key=lambda key: key.split("/"))


@given(KEYS)
def test_either_order_of_the_store_gives_the_order_of_the_keys(keys: set[str]) -> None:
    for listing in (by_folder(keys), sorted(keys)):
        ordered = in_key_order("", (Meta(key, 0, "", 0) for key in listing))
        assert [meta.key for meta in ordered] == sorted(keys)


@given(KEYS, st.lists(SEGMENT, min_size=1, max_size=3).map("/".join))
def test_start_of_a_listing_skips_nothing_that_is_wanted_in_either_order(keys: set[str], text: str) -> None:
    start = just_below("", text)
    wanted = {key for key in keys if key >= text}
    assert all(key > start for key in wanted)
    assert all(key.split("/") > start.split("/") for key in wanted)


def test_start_in_a_log_is_close_to_the_version() -> None:
    log = "_delta_log/"
    assert just_below(log, f"{log}{19:020d}.json") == f"{log}{18:020d}~"
    assert just_below(log, f"{log}{100:020d}.json") == f"{log}{0:018d}~"
    assert just_below(log, f"{log}{0:020d}.json") == ""
    assert just_below(log, log) == ""


def test_objects_directly_in_the_folder_pass_at_once() -> None:
    read = []

    def listing():  # type: ignore[no-untyped-def]
        for key in ("f/a", "f/b", "f/c"):
            read.append(key)
            yield Meta(key, 0, "", 0)

    assert next(in_key_order("f/", listing())).key == "f/a"
    assert read == ["f/a"]
