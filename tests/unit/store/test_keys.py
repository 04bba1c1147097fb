"""Keys of the lake's own objects, and keys that no store could hold exactly."""

import pytest

from lakevilla.errors import InvalidInput
from lakevilla.store import keys


def test_lake_keys_match_the_protocol() -> None:
    assert keys.HEAD == "_lakevilla/global/HEAD.json"
    assert keys.slot(42) == "_lakevilla/global/log/00000000000000000042.json"
    assert keys.past_head(42) == "_lakevilla/global/heads/00000000000000000042.json"
    assert (keys.seq_of(keys.slot(42)), keys.past_seq_of(keys.past_head(7))) == (42, 7)
    assert (keys.seq_of(keys.past_head(7)), keys.past_seq_of(keys.HEAD)) == (None, None)
    assert keys.probe("ab12") == "_lakevilla/probe/ab12.json"


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/..", "a/./b", "a\nb", "a\x7f", "\ud800"])
def test_key_that_a_store_would_change_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be the key"):
        keys.check_key(key)


@pytest.mark.parametrize("key", ["a", "a/b=1/c d", "a%2Fb", "ü/日本", "..a/b..", "a+b@#'"])
def test_key_of_any_other_kind_is_kept_as_it_is(key: str) -> None:
    assert keys.check_key(key) == key


def test_key_of_a_sublog_tells_its_attempt_and_others_tell_none() -> None:
    assert keys.attempt_of(keys.sublog("t1", "a2", 3)) == "a2"
    for other in (keys.lease("t1"), keys.marker(1), keys.slot(1), keys.HEAD, "x", f"{keys.TXNS}t1/a2/3.json"):
        assert keys.attempt_of(other) is None
