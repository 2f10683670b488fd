"""The bounds of the ledger: what is dropped, when, and what is known of it later."""

import asyncio
import threading
from collections.abc import Iterator, Sequence

import pytest

from forbear.core.record import reports_made
from forbear.core.service import Judgement
from forbear.http.request import Place
from forbear.run import harm, ledger
from forbear.run.ledger import Entries, Entry, enter, note_read
from forbear_testkit.run.ledgers import (
    HARMFUL,
    IN_DOUBT,
    POLICY,
    SAFE,
    empty_ledger,
    entry_of,
    own_entries,
    work_in_thread,
)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with empty_ledger(monkeypatch):
        yield


def numbered(*entries: Entry) -> Entries:
    """Return entries with the numbers from 1 on."""
    made = Entries()
    for number, entry in enumerate(entries, 1):
        entry.number = number
        made.append(entry)
    return made


def taken_back() -> Entry:
    """Return an entry of a request that was not executed."""
    entry = entry_of(HARMFUL)
    entry.take_back()
    return entry


def raise_error(*_: object) -> Judgement:
    """Fail, as a function of the user may."""
    raise KeyError


def judge_done(context: object, reads: Sequence[object], is_done: bool, done: Judgement, open_: Judgement) -> Judgement:
    """Judge by what became of the request."""
    return done if is_done else open_


def judge_reads(context: object, reads: Sequence[object], is_done: bool) -> Judgement:
    """Judge by what was read before."""
    return HARMFUL if reads else SAFE


def test_what_is_dropped() -> None:
    """Entries go that no open run needs, that were taken back or are harmless; the newest lost one is known."""
    entries = numbered(
        entry_of(HARMFUL),
        entry_of(HARMFUL),
        taken_back(),
        entry_of(SAFE),
        entry_of(IN_DOUBT),
        Entry(raise_error),
        Entry(judge_done, HARMFUL, SAFE),
        Entry(judge_done, SAFE, HARMFUL),
        Entry(judge_reads),
        taken_back(),
    )
    entries.reads = [(number, ("GET", number)) for number in range(1, 9)]
    entries.drop(0)
    assert [entry.number for entry in entries] == [1, 2, 5, 6, 7, 8, 9]
    assert (entries.lost, entries.lost_reads, len(entries.reads)) == (0, 0, 8)
    entries.drop(2)
    assert [entry.number for entry in entries] == [5, 6, 7, 8, 9]
    assert entries.lost == 2
    assert [number for number, _ in entries.reads] == [3, 4, 5, 6, 7, 8]
    entries.drop(2)
    assert entries.lost == 2
    entries.drop(6)
    assert (entries.lost, [entry.number for entry in entries]) == (6, [7, 8, 9])
    entries.reads = []
    entries.drop(6)
    assert [entry.number for entry in entries] == [7, 8]
    last = numbered(entry_of(HARMFUL), taken_back())
    last.drop(2)
    assert (last.lost, list(last)) == (1, [])


def test_no_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go, the number of the newest of them stays, and the next sweep comes once there are twice as many."""
    monkeypatch.setattr(ledger, "_MOST", 5)
    monkeypatch.setattr(ledger, "_SWEPT", 4)
    entries = numbered(*(entry_of(HARMFUL) for _ in range(5)))
    entries.reads = [(number, ("GET", number)) for number in range(1, 6)]
    assert entries.sweep == 4
    entries.drop(0)
    assert (len(entries), len(entries.reads), entries.lost, entries.lost_reads, entries.sweep) == (5, 5, 0, 0, 10)
    entries = numbered(*(entry_of(HARMFUL) for _ in range(8)))
    entries.reads = [(number, ("GET", number)) for number in range(1, 9)]
    entries.drop(0)
    assert [entry.number for entry in entries] == [number for number, _ in entries.reads] == [4, 5, 6, 7, 8]
    assert (entries.lost, entries.lost_reads) == (3, 3)
    entries.drop(5)
    assert (len(entries), len(entries.reads), entries.sweep) == (3, 3, 6)
    entries.reads = []
    entries.drop(7)
    assert (len(entries), entries.lost, entries.sweep) == (1, 7, 4)
    entries.reads = [(number, ("GET", number)) for number in range(8, 11)]
    entries.drop(0)
    assert entries.sweep == 6


def test_what_was_read_before_a_request() -> None:
    """URLs are taken apart once; the words of commands, and places, stay as they are."""
    entries, place = Entries(), Place(("https", "a.example", 443), "/a/")
    entries.reads = [(1, ("GET", "a")), (2, "https://shop.example/b/"), (3, place), (4, ("GET", "d"))]
    entry = entry_of(SAFE)
    entry.number = 4
    assert entries.reads_of(entry, 3) == []
    [found, last] = entries.reads_of(entry, 1)
    assert isinstance(found, Place)
    assert (found.origin, found.folder, last) == (("https", "shop.example", 443), "/b/", place)
    assert entries.reads_of(entry, 0) == [("GET", "a"), found, place]


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep early."""
    monkeypatch.setattr(ledger, "_SWEPT", 3)
    monkeypatch.setattr(ledger, "_MOST", 4)


@pytest.mark.usefixtures("_small")
def test_sweeping_a_thread() -> None:
    """Outside of runs everything goes; what the attempt under way has sent or read stays for its judgement."""
    for count in (1, 2, 0, 1):
        enter(entry_of(HARMFUL))
        assert len(own_entries()) == count
    assert own_entries().lost == reports_made.now - 1
    own_entries().clear()
    for count in (1, 2, 0, 1):
        note_read(("GET", "a"))
        assert len(own_entries().reads) == count
    own_entries().reads.clear()

    def work() -> None:
        for number in range(1, 4):
            enter(entry_of(HARMFUL))
            note_read(("GET", number))
        assert (len(own_entries()), len(own_entries().reads)) == (3, 3)
        own_entries().clear()
        raise LookupError

    note_read(("GET", "before"))
    enter(entry_of(HARMFUL))
    with pytest.raises(LookupError):
        POLICY.call(work)
    assert own_entries().lost == reports_made.now - 6


@pytest.mark.usefixtures("_small")
def test_sweeping_an_async_call() -> None:
    """Only what is harmless, or too much, leaves its log: no run in the stack says what it needs."""

    async def main() -> None:
        log = harm.HarmLog(0.0)
        for count in (1, 2, 0):
            enter(entry_of(SAFE))
            assert len(log.entries) == count
        for count in (1, 2, 3, 4, 5, 4):
            enter(entry_of(HARMFUL))
            assert len(log.entries) == count
        assert log.entries.lost == log.entries[0].number - 1
        log.end()
        log = harm.HarmLog(0.0)
        for count in (1, 2, 3, 4, 5, 6, 7, 4):
            note_read(("GET", count))
            assert len(log.entries.reads) == count
        assert log.entries.lost_reads == log.entries.reads[0][0] - 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("ended", "swept", "few", "are_threads", "kept", "then"),
    [
        ("two, one too few", 4, 1, True, 4, 4),
        ("two", 3, 1, True, 2, 2),
        ("two, few are many", 3, 9, True, 2, 9),
        ("two greenlets", 3, 1, False, 4, 3),
    ],
)
def test_threads_that_have_ended(
    monkeypatch: pytest.MonkeyPatch, ended: str, swept: int, few: int, are_threads: bool, kept: int, then: int
) -> None:
    """They go once there are so many, and the bound grows with those that go on; greenlets are none that ended."""
    monkeypatch.setattr(ledger, "_swept", [swept])
    monkeypatch.setattr(ledger, "_FEW_THREADS", few)
    monkeypatch.setattr(ledger, "_IS_OF_THREADS", are_threads)
    ledger._of_threads.update({-1: Entries(), -2: Entries(), threading.get_ident(): Entries()})
    work_in_thread(lambda: note_read("a"))
    assert (len(ledger._of_threads), ledger._swept[0]) == (kept, then), ended


def test_no_more_than_so_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that came first goes."""
    monkeypatch.setattr(ledger, "_MOST_THREADS", 3)
    ledger._of_threads.update({-1: Entries(), -2: Entries()})
    enter(entry_of(SAFE))
    assert list(ledger._of_threads) == [-1, -2, threading.get_ident()]
    ledger._of_threads.pop(threading.get_ident())
    ledger._of_threads[-3] = Entries()
    enter(entry_of(SAFE))
    assert list(ledger._of_threads) == [-2, -3, threading.get_ident()]
