"""The slot for a judge: it gets what is known of a failed call, and what it says only ever stops a run."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

import forbear
from forbear.core.service import Judgement
from forbear.events import Reason
from forbear.policy import retry
from forbear.run import judge_slot
from forbear.run.judge_slot import RunContext, slot
from forbear.testing import virtual_time
from forbear.verdicts import Safety
from forbear_testkit.run.drivers import DRIVERS, Driver

POLICY = retry(on=OSError, attempts=3)
UNSAFE = Judgement("shop", "orders.create", Safety.NEVER)
SAFE = Judgement("shop", "orders.get", Safety.ALWAYS, repeatable=True)


Asked = list[tuple[BaseException, RunContext]]


class Reader:
    """A judge who calls each request unsafe whose error has the word "order", and keeps what it was asked."""

    def __init__(self) -> None:
        self.looked: list[tuple[BaseException, BaseException | None]] = []
        self.asked: Asked = []

    def is_bare(self, error: BaseException) -> bool:
        return False

    def find(self, error: BaseException, handled: BaseException | None) -> str | None:
        self.looked.append((error, handled))
        return str(error) if "order" in str(error) or "get" in str(error) else None

    def judge(self, evidence: str, error: BaseException, context: RunContext) -> Judgement:
        self.asked.append((error, context))
        return UNSAFE if "order" in evidence else SAFE


@contextmanager
def filled(judge: Reader) -> Generator[Reader]:
    """Fill the slot within the block."""
    before, slot[0] = slot[0], judge
    try:
        with virtual_time():
            yield judge
    finally:
        slot[0] = before


@pytest.fixture
def reader() -> Generator[Reader]:
    """A judge in the slot."""
    with filled(Reader()) as judge:
        yield judge


def test_the_slot_is_filled() -> None:
    """The package fills it, and the judge is loaded at the first failure."""
    with filled(None):  # type: ignore[arg-type]
        with pytest.raises(OSError, match="order"):
            POLICY.call(_order)
        judge: Any = slot[0]
    assert judge.find(OSError(), None) is None


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_a_request_that_must_not_be_repeated_stops_the_run(driver: Driver, reader: Reader) -> None:
    """In every form of a run the error is raised at once, and its report names the operation."""
    failed = driver(POLICY, OSError("order lost"), "done")
    report = forbear.report(failed.error) if failed.error is not None else None
    assert report is not None
    assert (report.reason, len(failed.calls)) == (Reason.UNSAFE, 1)
    assert report.text.startswith("orders.create may have been executed and must not be executed twice")
    assert len(reader.looked) == 1


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
@pytest.mark.parametrize("text", ["get lost", "something else"])
def test_what_is_safe_or_not_shown_is_repeated(driver: Driver, text: str, reader: Reader) -> None:
    """A safe request is repeated, and so is a call whose error shows none, as the user asked."""
    done = driver(POLICY, OSError(text), OSError(text), "done")
    assert (done.value, len(done.calls), len(reader.looked)) == ("done", 3, 2)


@pytest.mark.parametrize("repeatable", [True, False])
def test_the_word_of_the_user_comes_first(repeatable: bool, reader: Reader) -> None:
    """With `repeatable` set nobody is asked."""
    policy = POLICY.with_repeatable(repeatable)
    with pytest.raises(OSError, match="order") as caught:
        policy.call(_order)
    report = forbear.report(caught.value)
    assert report is not None
    assert len(report.attempts) == (3 if repeatable else 1)
    assert reader.looked == []


def _order() -> None:
    raise OSError("order lost")


def test_the_context_has_the_call(reader: Reader) -> None:
    """It has the policy, the arguments, and the exception that was being handled at the call, but no inner one."""

    @POLICY
    def order(item: str, *, count: int) -> None:
        try:
            raise KeyError(item)
        except KeyError:
            raise OSError("order lost") from None

    with pytest.raises(OSError, match="order"):
        order("cat", count=2)
    handled = ValueError("older")
    try:
        raise handled
    except ValueError:
        with pytest.raises(OSError, match="order"):
            order("dog", count=3)
    contexts = [context for _, context in reader.asked]
    assert [(context.plan, context.args, dict(context.kwargs)) for context in contexts] == [
        (POLICY, ("cat",), {"count": 2}),
        (POLICY, ("dog",), {"count": 3}),
    ]
    assert [older for _, older in reader.looked] == [None, handled]
    assert all(context.elapsed >= 0 for context in contexts)


def test_an_error_of_the_judge_leaves_the_call_in_doubt() -> None:
    """The call's own error is raised, and stops outer runs, since nobody knows what the call did."""

    class Broken(Reader):
        def judge(self, evidence: str, error: BaseException, context: RunContext) -> Judgement:
            raise RuntimeError("broken judge")

    calls = list[int]()

    @retry(on=Exception, attempts=3)
    @POLICY
    def order() -> Any:
        calls.append(1)
        raise OSError("order lost")

    with filled(Broken()), pytest.raises(OSError, match="order lost"):
        order()
    assert calls == [1]


def test_chains_in_a_circle_end(reader: Reader) -> None:
    """A chain of errors that leads back to itself is followed once."""
    first, second = OSError("order lost"), KeyError("other")
    first.__context__, second.__context__ = second, first

    def order() -> None:
        raise first

    with pytest.raises(OSError, match="order"):
        POLICY.call(order)
    assert [older for _, older in reader.looked] == [None]


@pytest.mark.parametrize(("value", "mode"), [("", "repeat"), ("stop", "stop"), ("STOP", "stop"), ("repeat", "repeat")])
def test_the_environment_sets_the_modes(value: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """FORBEAR_UNKNOWN and FORBEAR_ENFORCE hold for policies without an option of their own."""
    monkeypatch.setenv("FORBEAR_UNKNOWN", value)
    assert judge_slot._mode("unknown") == mode
    monkeypatch.setenv("FORBEAR_ENFORCE", "warn")
    assert judge_slot._mode("enforce") == "warn"


def test_a_wrong_mode_is_the_strict_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is no choice warns, and nothing is repeated by mistake."""
    monkeypatch.setenv("FORBEAR_ENFORCE", "log")
    with pytest.warns(RuntimeWarning, match="`FORBEAR_ENFORCE` must be one of stop, warn, got 'log'"):
        assert judge_slot._mode("enforce") == "stop"


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("unknown", "RAISE", "`FORBEAR_UNKNOWN` must be one of repeat, stop, got 'raise'"),
        ("enforce", "yes", "`FORBEAR_ENFORCE` must be one of stop, warn, got 'yes'"),
    ],
)
def test_the_text_of_a_wrong_mode(option: str, value: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the variable, its values and what it has."""
    monkeypatch.setenv(f"FORBEAR_{option.upper()}", value)
    with pytest.warns(RuntimeWarning) as caught:
        assert judge_slot._mode(option) == "stop"
    assert str(caught[0].message) == text


class Answering(Reader):
    """A judge with one answer to everything."""

    def __init__(self, judgement: Judgement | None) -> None:
        super().__init__()
        self.judgement = judgement

    def judge(self, evidence: str, error: BaseException, context: RunContext) -> Judgement:
        super().judge(evidence, error, context)
        return self.judgement  # type: ignore[return-value]


COSTLY = SAFE.replace(billed=True, maybe_done=(409,))


@pytest.mark.parametrize(
    ("judgement", "unknown", "text"),
    [
        (None, None, None),
        (None, "repeat", None),
        (
            None,
            "stop",
            (
                'nothing shows what the attempt sent, and the policy has unknown="stop"; '
                "if a second execution does no harm, say so: repeatable=True"
            ),
        ),
        (SAFE, "stop", None),
    ],
)
def test_calls_of_which_nothing_is_known(judgement: Judgement | None, unknown: str | None, text: str | None) -> None:
    """The policy says what becomes of them, or else the process; an answer of the judge comes first."""
    policy = POLICY.with_changes(unknown=unknown)
    with filled(Answering(judgement)), pytest.raises(OSError, match="order lost") as caught:
        policy.call(_order)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.count, report.text if report.count == 1 else None) == (1 if text else 3, text)


def test_what_a_safe_call_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """That it may have been done, and which attempt was the first that cost money."""
    runs = list[Any]()

    def work() -> None:
        raise OSError("get lost")

    with filled(Answering(COSTLY)) as judge, pytest.raises(OSError, match="get lost") as caught:
        POLICY.call(work)
    runs = [context.run for _, context in judge.asked]
    assert [run.maybe_done for run in runs] == [True] * 3
    assert [run.billed for run in runs] == [1] * 3
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.billed, report.maybe_done) == (True, True)
    with filled(Answering(SAFE)) as judge, pytest.raises(OSError, match="get lost"):
        POLICY.call(work)
    assert [(context.run.maybe_done, context.run.billed) for _, context in judge.asked] == [(False, 0)] * 3
    events = list[Any]()
    warned = POLICY.with_changes(enforce="warn", on_event=events.append)
    with filled(Answering(UNSAFE)), pytest.raises(OSError, match="order lost"):
        warned.call(_order)
    texts = [event.text for event in events if isinstance(event, forbear.events.WouldStop)]
    assert len(texts) == 3
    assert texts[0].startswith("orders.create may have been executed and must not be executed twice")
    monkeypatch.setitem(judge_slot.modes, "enforce", "warn")
    with filled(Answering(UNSAFE)), pytest.raises(OSError, match="order lost") as caught:
        POLICY.call(_order)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.count == 3


def test_the_modes_without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first choice of each counts."""
    for name in ("FORBEAR_UNKNOWN", "FORBEAR_ENFORCE"):
        monkeypatch.delenv(name, raising=False)
    assert [judge_slot._mode(option) for option in ("unknown", "enforce")] == ["repeat", "stop"]
