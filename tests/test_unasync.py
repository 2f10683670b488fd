"""The sync loops are those that the async ones give."""

from tools.unasync import ASYNC, SYNC, translated


def test_the_sync_loops_are_up_to_date() -> None:
    """`make unasync` cures a failure."""
    assert SYNC.read_text(encoding="utf-8") == translated(ASYNC.read_text(encoding="utf-8"))
