"""Errors that `on` declines although `forbear.transient` would have retried them: a note and a line of DEBUG."""

import logging

import pytest

import forbear


class Refusing(ConnectionError):
    """An error that refuses notes."""

    def add_note(self, note: str) -> None:
        """Raise TypeError."""
        raise TypeError(note)


def notes(policy: forbear.Policy, error: Exception) -> list[str]:
    """Return the notes of an error that a function raises under a policy."""

    def work() -> None:
        raise error

    with pytest.raises(type(error)):
        policy.call(work)
    return getattr(error, "__notes__", [])


def test_a_transient_error_that_on_declines(caplog: pytest.LogCaptureFixture) -> None:
    """The note names the error; the log line names the operation."""
    with caplog.at_level(logging.DEBUG, "forbear"):
        (note,) = notes(forbear.retry(KeyError, name="load"), ConnectionResetError("gone"))
    text = "not retried, because `on` declined ConnectionResetError; forbear.transient would have retried it"
    assert note == f"forbear: {text}"
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("DEBUG", f"load: {text}")]


@pytest.mark.parametrize(
    ("policy", "error"),
    [
        (forbear.retry(KeyError), ValueError("a bug")),
        (forbear.retry(KeyError), FileNotFoundError("for good")),
        (forbear.retry(forbear.transient), FileNotFoundError("for good")),
        (forbear.retry(OSError, repeatable=False, attempts=1), KeyError("a bug")),
        (forbear.retry(KeyError), Refusing("gone")),
    ],
)
def test_other_errors_have_no_note(policy: forbear.Policy, error: Exception) -> None:
    """Neither a bug nor what nobody would retry, and an error that refuses notes is raised as it is."""
    assert notes(policy, error) == []


def test_one_note_is_enough() -> None:
    """The policy around another one that declined it adds none."""
    inner = forbear.retry(KeyError)
    error = TimeoutError("gone")

    @forbear.retry(IndexError)
    @inner
    def work() -> None:
        raise error

    with pytest.raises(TimeoutError):
        work()
    assert len(error.__notes__) == 1
