"""Reports: what an exception carries after a run gave up."""

import pickle
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from forbear.core.decide import Reason
from forbear.core.report import EXTENSION, Attempt, Report, attach, report, text_of

TEXT = "limit of 2 attempts reached"
TWO = (Attempt(1, "OSError", "lost", 0.25, 1), Attempt(2, "OSError", "lost again", 31.21))


def made(number: int | None = 1, *, maybe_done: bool = False) -> Report:
    """A report of two attempts."""
    return Report("fetch", TWO, 31.21, Reason.ATTEMPTS, TEXT, maybe_done, number)


def carrying(error: Exception) -> Exception:
    """The error with a report."""
    attach(error, made())
    return error


class Silent(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise LookupError("no words")


@dataclass(frozen=True)
class Frozen(Exception):
    """An error that forbids attributes."""

    code: int


class Slotted(Exception):
    """An error with slots of its own."""

    __slots__ = ("code",)


class Touchy(Exception):
    """An error that refuses attributes in its own way."""

    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError("do not touch")


def test_fields() -> None:
    """An attempt has no delay and a report no doubts, unless told."""
    assert TWO[1].delay is None
    assert (TWO[0].number, TWO[0].error, TWO[0].text, TWO[0].elapsed, TWO[0].delay) == (1, "OSError", "lost", 0.25, 1)
    plain = Report("fetch", TWO, 31.21, Reason.ATTEMPTS, TEXT)
    assert (plain.maybe_done, plain.made) == (False, None)
    assert (plain.operation, plain.attempts, plain.elapsed) == ("fetch", TWO, 31.21)
    assert (plain.reason, plain.text) == (Reason.ATTEMPTS, TEXT)
    assert made(1) == made(2) != made(1, maybe_done=True)


def test_long_texts_are_cut() -> None:
    """An error may quote a whole body; 500 characters tell enough."""
    assert Attempt(1, "OSError", 500 * "x", 0).text == 500 * "x"
    assert Attempt(1, "OSError", 499 * "x" + "yz", 0).text == 499 * "x" + "y"


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (made(), f"forbear: gave up after 2 attempts in 31.2 s: {TEXT}"),
        (
            made(maybe_done=True),
            f"forbear: gave up after 2 attempts in 31.2 s: {TEXT}; an earlier attempt may have worked",
        ),
        (
            Report("fetch", TWO[:1], 0.25, Reason.UNSAFE, "unsafe"),
            "forbear: gave up after 1 attempt in 0.25 s: unsafe",
        ),
        (Report("fetch", (), 0, Reason.BODY, "gone"), "forbear: gave up after 0 attempts in 0 s: gone"),
    ],
)
def test_note(found: Report, note: str) -> None:
    """One line says how often, how long and why."""
    assert found.note == note


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(OSError, ("lost",)), (Silent, ()), (Frozen, (1,)), (Slotted, ()), (Touchy, ())],
)
def test_attached(kind: type[Exception], arguments: tuple[object, ...]) -> None:
    """Every exception can carry a report and one note, whatever its class forbids or cannot do."""
    error = kind(*arguments)
    assert report(error) is None
    attach(error, made())
    assert report(error) == made()
    assert error.__notes__ == [made().note]


def test_attached_again() -> None:
    """A later run's report and note replace the earlier ones; the notes of others stay in their order."""
    error = OSError("lost")
    error.add_note("first")
    attach(error, made(1))
    error.add_note("second")
    later = Report("fetch", TWO[:1], 1, Reason.TIMEOUT, "timeout")
    attach(error, later)
    assert error.__notes__ == ["first", "second", later.note]
    assert report(error) is later


@pytest.mark.parametrize("notes", [None, 5, "text", ("forbear: x",), ["forbear: old", 7, "forbearance"]])
def test_odd_notes(notes: object) -> None:
    """Notes may be anything by accident; what is no list of notes gives way."""
    error = OSError("lost")
    error.__notes__ = notes  # type: ignore[assignment]
    attach(error, made())
    kept = [7, "forbearance"] if isinstance(notes, list) else []
    assert error.__notes__ == [*kept, made().note]


def test_pickled_with_its_error() -> None:
    """The report goes along to another process, where it counts as made there."""
    error = OSError("lost")
    attach(error, made(7))
    copied = pickle.loads(pickle.dumps(error))
    found = report(copied)
    assert found is not None
    assert found == made(None)
    assert found.made_after(10**9)
    assert copied.__notes__ == [made().note]


@pytest.mark.parametrize(("number", "since", "after"), [(7, 6, True), (7, 7, False), (7, 8, False), (None, 8, True)])
def test_made_after(number: int | None, since: int, after: bool) -> None:
    """Numbers tell reports of this process apart; one from another was made elsewhere, within whatever runs here."""
    assert made(number).made_after(since) is after


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        (None, False),
        (OSError("lost"), False),
        (SimpleNamespace(__forbear_report__="no report"), False),
        (SimpleNamespace(__forbear_report__=made()), True),
        (SimpleNamespace(extensions={EXTENSION: made()}), True),
        (SimpleNamespace(extensions={}), False),
        (SimpleNamespace(extensions=None), False),
        (SimpleNamespace(response=SimpleNamespace(extensions={EXTENSION: made()})), True),
        (SimpleNamespace(response=SimpleNamespace(__forbear_report__=made())), True),
        (SimpleNamespace(response=None), False),
        (SimpleNamespace(raw=SimpleNamespace(__forbear_report__=made())), True),
        (SimpleNamespace(response=SimpleNamespace(raw=SimpleNamespace(__forbear_report__=made()))), True),
        (OSError(carrying(KeyError("lost"))), True),
        (OSError(KeyError("lost")), False),
        (OSError(), False),
    ],
)
def test_found_on_errors_and_responses(outcome: object, found: bool) -> None:
    """On the error or the one it is made of, on a response, in its extensions or what it has raw, or on an error's."""
    assert report(outcome) == (made() if found else None)


def test_an_errors_own_report_comes_first() -> None:
    """What was tried last is what counts."""
    inner = Report("inner", TWO, 1, Reason.TIMEOUT, "timeout")
    error = SimpleNamespace(__forbear_report__=made(), response=SimpleNamespace(extensions={EXTENSION: inner}))
    assert report(error) == made()


def test_texts() -> None:
    """The error's own words, or why there are none."""
    assert text_of(OSError("lost")) == "lost"
    assert text_of(Silent()) == "(no text: its __str__ raised LookupError)"


def test_where_responses_keep_it() -> None:
    """The key is part of the interface: it stands in the documentation."""
    assert EXTENSION == "forbear_report"


class Unread(Exception):
    """An error whose response cannot be looked at."""

    @property
    def response(self) -> object:
        """Not yet."""
        raise RuntimeError("not read yet")


def test_what_cannot_be_looked_into_has_none() -> None:
    """A property that raises must not take the place of the error at hand."""
    assert report(Unread()) is None
