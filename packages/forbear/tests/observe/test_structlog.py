"""Entries of structlog, as its own processors get them."""

import structlog
from structlog.testing import capture_logs

from forbear.observe.structlog import Structlog
from forbear_testkit.observe.runs import SECRET, conflicts, gives_up, recovers


def test_entries_have_levels_and_values_and_no_secret() -> None:
    """The events of logging with the same levels, as values; no secret is in them."""
    with capture_logs() as entries:
        for scene in (recovers, gives_up, conflicts):
            scene(Structlog())
    assert [(entry["log_level"], entry["event"]) for entry in entries] == [
        ("warning", "retry scheduled"),
        ("warning", "retry scheduled"),
        ("info", "recovered"),
        ("warning", "retry scheduled"),
        ("warning", "gave up"),
        ("info", "gave up"),
    ]
    assert entries[0]["operation"] == "fetch"
    assert entries[0]["delay"] == 1
    assert entries[4]["reason"] == "attempts"
    assert SECRET not in repr(entries)


def test_entries_have_the_context_of_a_bound_logger() -> None:
    """The values that are bound to the logger stand in the entries."""
    with capture_logs() as entries:
        gives_up(Structlog(structlog.get_logger().bind(job="nightly")))
    assert {entry["job"] for entry in entries} == {"nightly"}
