"""What is right and wrong with HEAD and the entries of the global log, in stories of writes."""

import json

from tests.unit.sim.checkers.test_lives import Story


def test_entry_of_the_global_log_that_is_not_settled_never_goes() -> None:
    story = Story()
    head = {"lake": "L", "seq": 0, "tables": {}, "versions": {}, "tags": {}}
    story.write(0.0, "c0", "lake/_lakevilla/global/HEAD.json", json.dumps(head).encode())
    story.write(0.0, "c0", f"lake/_lakevilla/global/log/{1:020d}.json", b"{}")
    story.write(1.0, "c0", f"lake/_lakevilla/global/log/{1:020d}.json", None)
    assert "not settled" in story.found[0]


def test_entry_that_was_written_for_a_deleted_lake_may_go() -> None:
    """Its create applied after the folder was deleted. HEAD may have been created again for the same lake."""
    for later, is_blamed in (("", False), ("M", False), ("L", True)):
        story = Story()
        head = {"lake": "L", "seq": 0, "tables": {}, "versions": {}, "tags": {}}
        story.write(0.0, "c0", "lake/_lakevilla/global/HEAD.json", json.dumps(head).encode())
        story.write(1.0, "wrecker", "lake/_lakevilla/global/HEAD.json", None)
        slot = f"lake/_lakevilla/global/log/{1:020d}.json"
        story.write(2.0, "c0", slot, json.dumps({"lake": "L"}).encode())
        if later:
            again = json.dumps({**head, "lake": later}).encode()
            story.write(3.0, "c1", "lake/_lakevilla/global/HEAD.json", again)
        story.write(4.0, "c0", slot, None)
        assert any("not settled" in problem for problem in story.found) is is_blamed


def test_transaction_is_cut_short_if_its_lake_was_deleted_before_its_entry_was_settled() -> None:
    for settled, expected in ((False, {"x"}), (True, set())):
        story = Story()
        for seq in range(2 if settled else 1):
            head = {"lake": "L", "seq": seq, "tables": {}, "versions": {}, "tags": {}}
            slot = json.dumps({"txn": "x"}).encode()
            story.write(0.0, "c0", "lake/_lakevilla/global/HEAD.json", json.dumps(head).encode())
            story.write(0.0, "c0", f"lake/_lakevilla/global/log/{1:020d}.json", slot)
        for key in ("HEAD.json", f"log/{1:020d}.json"):
            story.write(1.0, "wrecker", f"lake/_lakevilla/global/{key}", None)
        assert story.keeping.cut_short == expected


def test_head_that_jumps_is_found() -> None:
    story = Story()
    for seq in (0, 2):
        head = {"lake": "L", "seq": seq, "tables": {}, "versions": {}, "tags": {}}
        story.write(0.0, "c0", "lake/_lakevilla/global/HEAD.json", json.dumps(head).encode())
    assert "HEAD of lake is at 2 after 0" in story.found[0]
