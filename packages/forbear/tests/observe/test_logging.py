"""Lines of logging: one a retry, one for the end, no secret."""

import logging

import pytest

import forbear
from forbear.observe.logging import Logging
from forbear.testing import virtual_time
from forbear_testkit.observe.runs import SECRET, Busy, conflicts, gives_up, recovers, run


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Levels and texts."""
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def test_a_recovery_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A warning for each retry, before its wait; the success in the end is no more than information."""
    caplog.set_level(logging.INFO, "forbear")
    recovers()
    assert lines(caplog) == [
        (
            "WARNING",
            "fetch: attempt 1 failed (Busy: no answer from https://h/o?sig=[redacted]), attempt 2 in 1 s",
        ),
        ("WARNING", "fetch: attempt 2 failed (Busy: down), attempt 3 in 1 s"),
        ("INFO", "fetch: attempt 3 worked, after 2 s"),
    ]
    assert {record.name for record in caplog.records} == {"forbear"}


def test_the_end_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Why it was given up, and what the last failure was; a warning, for the error itself is raised."""
    gives_up()
    assert lines(caplog)[-1] == (
        "WARNING",
        (
            "fetch: gave up after 2 attempts in 1 s: limit of 2 attempts reached [attempts]; "
            "last failure: Busy: token=[redacted]"
        ),
    )


def test_a_conflict_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """In a read-modify-write it is part of the game."""
    conflicts()
    assert lines(caplog) == []
    caplog.set_level(logging.INFO, "forbear")
    conflicts()
    assert [level for level, _ in lines(caplog)] == ["INFO"]


def test_success_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Not even at the lowest level."""
    caplog.set_level(1, "forbear")
    run("value")
    assert lines(caplog) == []


def test_records_hold_plain_values(caplog: pytest.LogCaptureFixture) -> None:
    """For handlers that keep fields apart; no secret is in them, and no exception that would keep frames alive."""
    caplog.set_level(logging.INFO, "forbear")
    recovers()
    gives_up()
    held = [record.__dict__["forbear"] for record in caplog.records]
    assert held[0] == {
        "event": "retry scheduled",
        "operation": "fetch",
        "attempt": 2,
        "delay": 1,
        "elapsed": 0,
        "vouched": False,
        "error": "Busy",
        "text": "no answer from https://h/o?sig=[redacted]",
    }
    assert held[2] == {"event": "recovered", "operation": "fetch", "attempt": 3, "elapsed": 2}
    assert held[-1] == {
        "event": "gave up",
        "operation": "fetch",
        "attempts": 2,
        "elapsed": 1,
        "reason": "attempts",
        "rule": "limit of 2 attempts reached",
        "maybe_done": False,
        "vouched": False,
        "billed": False,
        "error": "Busy",
        "text": "token=[redacted]",
    }
    assert SECRET not in caplog.text
    assert SECRET not in repr(held)


def test_another_logger(caplog: pytest.LogCaptureFixture) -> None:
    """By name or as it is."""
    for logger in ("app.retries", logging.getLogger("app.retries")):
        caplog.clear()
        gives_up(Logging(logger))
        assert [record.name for record in caplog.records] == ["app.retries", "forbear"] * 2


def test_an_error_of_several_lines_is_told_in_one(caplog: pytest.LogCaptureFixture) -> None:
    """As those of gRPC are; and no server writes a line of the log by itself."""
    run(Busy("lost\nWARNING:root:all is lost"), "value")
    assert lines(caplog) == [
        ("WARNING", "fetch: attempt 1 failed (Busy: lost WARNING:root:all is lost), attempt 2 in 1 s")
    ]


def test_what_cannot_be_written(caplog: pytest.LogCaptureFixture) -> None:
    """A lone surrogate in a name or an error is spelt out: a handler that writes UTF-8 would fail on it."""
    policy = forbear.retry(on=OSError, attempts=1, name="GET x\udcff")

    def fail() -> None:
        raise OSError("y\udcff")

    with virtual_time(), pytest.raises(OSError, match="y"):
        policy.call(fail)
    (record,) = caplog.records
    assert record.getMessage().startswith("GET x\\udcff: gave up")
    assert record.getMessage().encode().endswith(b"OSError: y\\udcff")
