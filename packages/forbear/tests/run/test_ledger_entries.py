"""The ledger as an adapter uses it: what it enters is judged, remembered and dropped, in threads and async calls."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import forbear
from forbear.core.record import reports_made
from forbear.core.service import Judgement
from forbear.events import Reason, WouldStop
from forbear.run import harm, ledger
from forbear.run.judge_slot import modes
from forbear.run.ledger import Entry, enter, has_reads, note_read, reads_in, replace, why_not_again
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear_testkit.run.ledgers import (
    HARMFUL,
    IN_DOUBT,
    POLICY,
    SAFE,
    WHY,
    empty_ledger,
    entry_of,
    own_entries,
    work_in_thread,
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with empty_ledger(monkeypatch):
        yield


def run_of(policy: forbear.Policy = POLICY, *, awaits: bool = False) -> Run:
    """Return a run that begins now."""
    runtime = current.get()
    return Run(policy, "shop.charge", runtime, runtime.monotonic(), awaits=awaits)


def why(run: Run, **options: Any) -> str | None:
    """Return why the attempt of a run must not be repeated."""
    return why_not_again(run, len, (), {}, **options)


@pytest.mark.parametrize("form", ["sync", "async"])
@pytest.mark.parametrize("is_done", [False, True])
def test_what_an_entry_is_judged_with(form: str, is_done: bool) -> None:
    """Its function gets the call that failed, what was read before in the attempt, and what became of the request."""
    seen, calls = list[Any](), list[object]()

    def judge(*arguments: object) -> Judgement:
        seen.append(arguments)
        return HARMFUL

    def work(order: int, *, currency: str) -> None:
        calls.append((order, currency))
        note_read(("GET", "price"))
        entry = Entry(judge, "a part", 7)
        enter(entry)
        note_read(("GET", "too late"))
        if is_done:
            entry.done()
        raise ValueError

    async def awork(order: int, *, currency: str) -> None:
        work(order, currency=currency)

    calls_of = {
        "sync": lambda: POLICY.call(work, 4711, currency="EUR"),
        "async": lambda: asyncio.run(POLICY.acall(awork, 4711, currency="EUR")),
    }
    note_read(("GET", "before the run"))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - it has no text
        calls_of[form]()
    [(context, *others)] = seen
    assert others == [[("GET", "price")], is_done, "a part", 7]
    assert (context.function, context.args) == (work if form == "sync" else awork, (4711,))
    assert (context.kwargs, context.plan, context.run.attempt) == ({"currency": "EUR"}, POLICY, 1)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, report.text, len(calls)) == (Reason.UNSAFE, WHY, 1)


def test_a_large_request_is_judged_at_once() -> None:
    """It is judged for any run, as one that has succeeded, and once: nothing of it is kept for later."""
    seen = list[Any]()

    def judge(*arguments: object) -> Judgement:
        seen.append(arguments)
        return HARMFUL

    entry = Entry(judge, b"a large body")
    assert (entry.is_done, entry.is_open) == (False, True)
    entry.done(is_large=True)
    assert seen == [(None, (), True, b"a large body")]
    assert entry.judge(SimpleNamespace(), ["a read"]) is HARMFUL  # type: ignore[arg-type]
    assert (len(seen), entry._parts, entry.is_done) == (1, (), True)
    small = Entry(judge, "small")
    small.done()
    small.judge(None, ())
    Entry(judge, "other").judge(None, ["read"], done=True)
    assert seen[1:] == [(None, (), True, "small"), (None, ["read"], True, "other")]


def test_numbers() -> None:
    """Each entry and each read gets the next number, by which a run sees that something was sent."""
    first = enter(entry_of(SAFE))
    assert reports_made.now == first == own_entries()[0].number
    note_read(("GET", "a"))
    assert reports_made.now == first + 1
    assert own_entries().reads == [(first + 1, ("GET", "a"))]
    assert enter(entry_of(SAFE)) == first + 2


def test_what_a_listener_reads_or_sends_is_not_kept() -> None:
    """It gets a number all the same."""
    numbers = list[int]()

    def listen(_: object) -> None:
        numbers.append(enter(entry_of(HARMFUL)))
        note_read(("GET", "metrics"))

    def work() -> None:
        assert not has_reads()
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - it has no text
        POLICY.with_changes(on_event=listen).call(work)
    assert ledger._of_threads == {}
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 6


def test_who_has_read_something() -> None:
    """A thread has its own reads; a thread of `to_thread` has those of the async calls around it."""
    seen = list[bool]()

    def look() -> None:
        seen.append(has_reads())

    async def inner() -> None:
        enter(entry_of(SAFE))
        await asyncio.to_thread(look)

    async def outer(*, reads: bool) -> None:
        enter(entry_of(SAFE))
        if reads:
            note_read(("GET", "a"))
        await asyncio.to_thread(look)
        await POLICY.acall(inner)
        work_in_thread(look)

    asyncio.run(POLICY.acall(outer, reads=False))
    assert seen == [False, False, False]
    seen.clear()
    asyncio.run(POLICY.acall(outer, reads=True))
    look()
    work_in_thread(look)
    assert seen == [True, True, False, True, False]


def test_what_an_attempt_has_read() -> None:
    """A sync run sees the reads of its thread since its attempt began, an async one those in its context."""
    elsewhere = list[object]()
    note_read(("GET", "before"))
    run = run_of()
    assert reads_in(run) == []
    work_in_thread(lambda: note_read(("GET", "elsewhere")))
    assert reads_in(run) == []
    note_read(("GET", "a"))
    note_read("https://shop.example/b")
    assert reads_in(run) == [("GET", "a"), "https://shop.example/b"]
    run.reports = own_entries().reads[-1][0] - 1
    assert reads_in(run) == ["https://shop.example/b"]
    run.reports += 1
    note_read(("GET", "c"))
    assert reads_in(run) == [("GET", "c")]
    assert reads_in(run_of(awaits=True)) == []

    async def main() -> None:
        log = harm.HarmLog(0.0)
        awaited, plain = run_of(awaits=True), run_of()
        await asyncio.to_thread(note_read, ("GET", "in a thread"))
        assert reads_in(awaited) == [("GET", "in a thread")]
        assert reads_in(plain) == []
        log.close()
        assert reads_in(awaited) == []

    asyncio.run(main())
    run = run_of()
    note_read(("GET", "here"))
    work_in_thread(lambda: elsewhere.extend(reads_in(run)))
    assert elsewhere == []


def test_why_an_attempt_is_not_repeated() -> None:
    """Requests since it began decide, in their order, but those that were taken back or may be repeated."""
    run = run_of()
    assert why(run) is None
    enter(entry_of(HARMFUL))
    run = run_of()
    enter(entry_of(IN_DOUBT))
    enter(entry_of(SAFE))
    closed = entry_of(HARMFUL)
    enter(closed)
    closed.take_back()
    assert (why(run), run.maybe_done) == (None, True)
    run.reports = reports_made.now
    assert (why(run), run.maybe_done) == (None, True)
    enter(entry_of(HARMFUL))
    enter(entry_of(HARMFUL.replace(refused="another reason")))
    assert why(run) == WHY
    run.reports += 1
    assert why(run) == "another reason"
    fresh = run_of()
    enter(entry_of(SAFE))
    assert (why(fresh), fresh.maybe_done) == (None, False)


def test_what_was_dropped_unjudged() -> None:
    """Entries and reads of the attempt that are lost count as a request that must not be repeated."""
    run = run_of()
    enter(entry_of(SAFE))
    own_entries().lost = run.reports
    assert why(run) is None
    own_entries().lost_reads = run.reports
    assert why(run) is None
    own_entries().lost_reads += 1
    assert why(run) == (
        "the attempt has sent more than 1000 requests that may not be repeated blindly; decorate the function that "
        "does the work on one item"
    )
    own_entries().clear()
    assert why(run) is None
    own_entries().lost = run.reports + 1
    assert why(run) == ledger.LOST
    enter(entry_of(HARMFUL))
    assert why(run) == WHY


def test_a_policy_that_only_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The listeners get the reason, and the attempt may be repeated; the policy's word comes before the process's."""
    events = list[Any]()
    run = run_of(POLICY.with_changes(enforce="warn", on_event=events.append))
    assert (why(run), events) == (None, [])
    enter(entry_of(HARMFUL))
    assert why(run) is None
    assert events == [WouldStop("shop.charge", 1, 0.0, WHY)]
    strict, open_to_all = run_of(POLICY.with_changes(enforce="stop")), run_of()
    strict.reports = open_to_all.reports = run.reports
    monkeypatch.setitem(modes, "enforce", "warn")
    assert (why(strict), why(open_to_all)) == (WHY, None)


def test_the_log_of_an_async_run() -> None:
    """Its entries are those of its context, or of the log that is passed; without a log they are the thread's."""

    async def main() -> None:
        awaited = run_of(awaits=True)
        enter(entry_of(HARMFUL))
        assert why(awaited) == WHY
        log = harm.HarmLog(0.0)
        assert why(awaited) is None
        enter(entry_of(IN_DOUBT))
        assert (why(awaited), awaited.maybe_done, why(run_of())) == (None, True, None)
        assert log.entries is not None
        inner = harm.HarmLog(1.0)
        enter(entry_of(HARMFUL.replace(refused="sent within")))
        assert [len(each.entries) for each in (inner, log)] == [1, 2]
        log.entries[:] = []
        assert (why(awaited), why(awaited, log=log)) == ("sent within", None)
        inner.end()
        enter(entry_of(HARMFUL))
        assert (inner.entries, len(log.entries)) == (None, 1)

    asyncio.run(main())


def test_an_entry_in_the_place_of_another() -> None:
    """It is replaced wherever it was entered, and no other entry is."""
    entry, other, twin = entry_of(HARMFUL), entry_of(SAFE), entry_of(HARMFUL)
    replace(entry, other)  # nothing was entered yet

    async def main() -> None:
        outer = harm.HarmLog(0.0)
        enter(twin)
        inner = harm.HarmLog(1.0)
        for each in (entry, entry_of(SAFE)):
            enter(each)
        replace(entry, other)
        assert [list(log.entries)[-2] for log in (outer, inner)] == [other, other]
        assert (own_entries()[0], own_entries()[1], len(own_entries())) == (twin, other, 3)
        assert len(outer.entries) == 3

    asyncio.run(main())


@pytest.mark.parametrize(
    ("what", "options", "count"),
    [("sent", {}, 1), ("sent, the user's word", {"repeatable": True}, 3), ("nothing", {}, 3)],
    ids=["sent", "word", "nothing"],
)
def test_what_a_task_sends_in_the_wait(what: str, options: dict[str, Any], count: int) -> None:
    """It forbids the attempt after the wait; the report has the failure of the last one, and the time until now."""
    attempts, tasks = list[int](), list[asyncio.Task[None]]()

    async def late(failed: asyncio.Event) -> None:
        await failed.wait()
        enter(entry_of(HARMFUL))

    async def work(failed: asyncio.Event) -> None:
        attempts.append(1)
        if what != "nothing" and len(attempts) == 1:
            tasks.append(asyncio.create_task(late(failed)))
        raise ValueError("failed")

    async def main() -> None:
        failed = asyncio.Event()
        policy = POLICY.with_changes(on_event=lambda _: failed.set(), **options)
        with pytest.raises(ValueError, match="failed") as caught:
            await policy.acall(work, failed)
        await asyncio.gather(*tasks)
        report = forbear.report(caught.value)
        assert report is not None
        assert [attempt.text for attempt in report.attempts] == ["failed"] * count
        if count == 1:
            assert (report.reason, report.text, report.elapsed) == (Reason.UNSAFE, WHY, 5.0)
        else:
            assert (report.reason, report.elapsed) == (Reason.ATTEMPTS, 10.0)

    asyncio.run(main())
    assert len(attempts) == count
