"""Reports: what an exception carries after a run gave up."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.record import reports_made
from forbear.core.report import ATTRIBUTE, EXTENSION, Report, attach, carry, find_carried, report, text_of

TEXT = "limit of 2 attempts reached"
TWO = (Attempt(1, "OSError", "lost", 0.25, 1), Attempt(2, "OSError", "lost again", 31.21))


def made(*, maybe_done: bool = False, omitted: int = 0) -> Report:
    """A report of two attempts."""
    return Report("fetch", TWO, 31.21, Reason.ATTEMPTS, TEXT, maybe_done, omitted)


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


def test_attempts_and_reports_have_defaults() -> None:
    """An attempt has no delay and a report no doubts, unless told."""
    assert TWO[1].delay is None
    assert (TWO[0].number, TWO[0].error, TWO[0].text, TWO[0].elapsed, TWO[0].delay) == (1, "OSError", "lost", 0.25, 1)
    plain = Report("fetch", TWO, 31.21, Reason.ATTEMPTS, TEXT)
    assert (plain.maybe_done, plain.omitted, plain.count, plain.origin) == (False, 0, 2, None)
    assert (plain.operation, plain.attempts, plain.elapsed) == ("fetch", TWO, 31.21)
    assert (plain.reason, plain.text) == (Reason.ATTEMPTS, TEXT)
    assert made() == made() != made(maybe_done=True)
    assert made().number < made().number == reports_made.now


def test_long_texts_are_cut() -> None:
    """An error may quote a whole body; 500 characters tell enough."""
    assert Attempt(1, "OSError", 500 * "x", 0).text == 500 * "x"
    assert Attempt(1, "OSError", 499 * "x" + "yz", 0).text == 499 * "x" + "y"


@pytest.mark.parametrize(
    ("found", "note"),
    [
        (made(), f"forbear: gave up after 2 attempts in 31.2 s: {TEXT} [attempts]"),
        (
            made(maybe_done=True),
            f"forbear: gave up after 2 attempts in 31.2 s: {TEXT}; an earlier attempt may have worked [attempts]",
        ),
        (
            Report("fetch", TWO[:1], 0.25, Reason.UNSAFE, "unsafe"),
            "forbear: gave up after 1 attempt in 0.25 s: unsafe [unsafe]",
        ),
        (
            Report("fetch", TWO[:1], 0.25, Reason.UNSAFE, "unsafe", maybe_done=True),
            "forbear: gave up after 1 attempt in 0.25 s: unsafe; the attempt may have worked [unsafe]",
        ),
        (
            made(omitted=199_998),
            (
                "forbear: gave up after 200000 attempts (199998 of them omitted from the report) "
                f"in 31.2 s: {TEXT} [attempts]"
            ),
        ),
        (Report("fetch", (), 0, Reason.BODY, "gone"), "forbear: gave up after 0 attempts in 0 s: gone [body]"),
    ],
)
def test_the_note_says_how_often_how_long_and_why(found: Report, note: str) -> None:
    """One line says how often, how long and why."""
    assert found.note == note


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(OSError, ("lost",)), (Silent, ()), (Frozen, (1,)), (Slotted, ()), (Touchy, ())],
)
def test_every_exception_can_carry_a_report(kind: type[Exception], arguments: tuple[object, ...]) -> None:
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
    attach(error, made())
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
    attach(error, made())
    copied = pickle.loads(pickle.dumps(error))
    found = report(copied)
    assert found is not None
    assert found == made()
    assert found.number == reports_made.now - 1
    assert copied.__notes__ == [made().note]


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
    """The last attempts count."""
    inner = Report("inner", TWO, 1, Reason.TIMEOUT, "timeout")
    error = SimpleNamespace(__forbear_report__=made(), response=SimpleNamespace(extensions={EXTENSION: inner}))
    assert report(error) == made()


def test_the_text_of_an_error_or_why_there_is_none() -> None:
    """The error's own words, or why there are none."""
    assert text_of(OSError("lost")) == "lost"
    assert text_of(OSError("caf\u00e9 \udcff")) == "caf\u00e9 \\udcff"
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


class Answering(Exception):
    """An error that looks unknown names up in a response, and fails as it likes where they are not there."""

    def __init__(self, answer: dict[str, object]) -> None:
        super().__init__("boom")
        self.answer = answer

    def __getattr__(self, name: str) -> object:
        return self.__dict__["answer"][name]


class NotesOfItsOwn(Exception):
    """An error whose notes cannot be set."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        return []


class Rootless(Exception):
    """An error that hides its attributes."""

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise RuntimeError("hidden")


class Closed(Exception):
    """An error that lets nobody look at it."""

    def __getattribute__(self, name: str) -> object:
        if name == "__class__":
            return Closed
        raise KeyError(name)


class Unprintable:
    """A note that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("bad note")


class Slippery(list[str]):
    """Notes that cannot be read."""

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not now")


def noted(notes: object) -> Exception:
    """An error with notes."""
    error = OSError("lost")
    error.__notes__ = notes  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    "error",
    [
        Answering({"code": 503}),
        NotesOfItsOwn("x"),
        Rootless("x"),
        Closed("x"),
        noted([Unprintable()]),
        noted(Slippery(["a"])),
    ],
    ids=["answering", "own-notes", "rootless", "closed", "unprintable-note", "slippery-notes"],
)
def test_nothing_that_an_error_refuses_keeps_its_report_away(error: Exception) -> None:
    """Attaching never raises, and the report is there."""
    attach(error, made())
    assert report(error) == made()


def test_notes_that_cannot_be_printed_stay() -> None:
    """They are the caller's; Python's own traceback can cope with them."""
    note = Unprintable()
    error = noted([note])
    attach(error, made())
    assert error.__notes__ == [note, made().note]


def test_notes_in_a_tuple_stay() -> None:
    """Tracebacks print them as they print lists."""
    error = noted(("mind the gap",))
    attach(error, made())
    assert error.__notes__ == ["mind the gap", made().note]


def test_the_report_of_a_cause() -> None:
    """An error that was raised from one with a report tells it, too."""
    wrapped = KeyError("wrapped")
    wrapped.__cause__ = carrying(OSError("lost"))
    assert report(wrapped) == made()
    assert report(ExceptionGroup("two", [ValueError("none"), wrapped])) == made()
    assert [carrier for carrier, _ in find_carried(wrapped)] == [wrapped.__cause__]


def test_looking_for_reports_ends() -> None:
    """Causes may go in circles and groups may be huge."""
    one, other = KeyError("one"), KeyError("other")
    one.__cause__, other.__cause__ = other, one
    assert report(one) is None
    group: ExceptionGroup[Exception] = ExceptionGroup("many", [OSError(str(number)) for number in range(10_000)])
    for _ in range(50):
        group = ExceptionGroup("more", [group, *group.exceptions[:10]])
    assert report(group) is None


def test_reports_behind_an_error() -> None:
    """With `behind`, contexts are searched, suppressed ones too, and so is what an error with a report holds."""
    first, last = carrying(OSError("lost")), carrying(KeyError("last"))
    last.__context__ = first
    last.__suppress_context__ = True
    assert [carrier for carrier, _ in find_carried(last)] == [last]
    assert [carrier for carrier, _ in find_carried(last, behind=True)] == [last, first]
    first.__context__ = last
    assert len(list(find_carried(last, behind=True))) == 2
    assert list(find_carried(last, find=lambda carrier: None)) == []


def test_carried_without_a_note() -> None:
    """An error may carry a report that another one shows."""
    error = OSError("lost")
    carry(error, made())
    assert report(error) == made()
    assert not hasattr(error, "__notes__")


def test_a_response_without_a_report() -> None:
    """The response of an error is looked at, and not searched further."""
    error = OSError("failed")
    error.response = SimpleNamespace(response=carrying(OSError("another")))  # type: ignore[attr-defined]
    assert report(error) is None


class Metadata(dict[str, object]):
    """The metadata of a response of botocore: a dict that takes attributes."""


@pytest.mark.parametrize("response", [{}, {"ResponseMetadata": {}}, {"ResponseMetadata": Metadata()}])
def test_a_response_of_botocore_without_a_report(response: dict[str, object]) -> None:
    """A plain dict has none, whatever metadata it has."""
    assert report(response) is None


def test_the_report_of_a_response_of_botocore() -> None:
    """It rides in the metadata, since a dict takes no attributes."""
    metadata = Metadata()
    setattr(metadata, ATTRIBUTE, made())
    assert report({"ResponseMetadata": metadata}) == made()
