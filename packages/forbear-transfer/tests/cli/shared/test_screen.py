"""The live lines of running transfers: their figures and words, and that they fit the terminal."""

import io
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from forbear.core.attempt import Attempt
from forbear.core.decide import Reason
from forbear.core.events import Scheduled
from forbear.core.report import Report
from forbear_transfer.cli.shared.reporter import Reporter, format_bytes, format_clock, format_span
from forbear_transfer.cli.shared.screen import Screen
from forbear_transfer.cli.shared.statistics import Statistics
from forbear_transfer.items import Item, Outcome, Status
from forbear_transfer.progress import Finished, Moved, Planned, Retried, Sized, Started

MIB = 1024 * 1024


@dataclass
class Clock:
    """A clock that a test sets."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def item(name: str, size: int | None = 100 * MIB) -> Item:
    """An upload."""
    return Item(name, f"gs://bkt/{name}", size=size)


def unavailable(delay: float = 2.1) -> Scheduled:
    """A retry because of a 503."""
    return Scheduled("upload", 2, 1.0, delay, Attempt(1, "HTTP 503", "503 Service Unavailable", 1.0, delay))


def lines(statistics: Statistics, width: int = 100, *, color: bool = False) -> list[str]:
    """Return the lines that a terminal of that width shows."""
    console = Console(file=io.StringIO(), width=width, force_terminal=color, color_system="standard" if color else None)
    with console.capture() as captured:
        console.print(Screen(statistics))
    return captured.get().splitlines()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1023 * 1024, "1.0 MiB"),
        (1.25 * 2**30, "1.2 GiB"),
        (2**62, "4096.0 PiB"),
    ],
)
def test_a_size_has_its_shortest_unit(count: float, text: str) -> None:
    """A size has the unit in which it is short."""
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3_723, "1:02:03"), (200_000, "2 days")]
)
def test_times_to_wait(seconds: float, text: str) -> None:
    """A time to wait is as on a clock."""
    assert format_clock(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.24, "0.2 s"), (42, "42 s"), (119.6, "120 s"), (150, "2:30")])
def test_times_that_have_passed(seconds: float, text: str) -> None:
    """A time that has passed is in seconds, unless it was long."""
    assert format_span(seconds) == text


def test_the_figures_of_transfers() -> None:
    """Bytes across are those of what is over and of what is under way; bytes that must go again are taken back."""
    statistics, one, two = Statistics(Clock()), item("one"), item("two", 50 * MIB)
    statistics(Planned(2, 150 * MIB, True))
    for each in (one, two):
        statistics(Started(each))
    statistics(Moved(one, 40 * MIB))
    statistics(Moved(one, -10 * MIB))
    statistics(Moved(two, 25 * MIB))
    assert statistics.across == 55 * MIB
    statistics(Finished(Outcome(two, Status.DONE, bytes=50 * MIB)))
    assert (statistics.across, statistics.done, statistics.ended_items) == (80 * MIB, 1, 1)
    assert statistics.share == pytest.approx(80 / 150)
    assert [flight.item.source for flight in statistics.largest(4, 1)] == ["one"]
    statistics(Finished(Outcome(one, Status.FAILED, error="no")))
    assert (statistics.across, statistics.size, statistics.share) == (50 * MIB, 50 * MIB, 1.0)


def test_what_was_there_before_has_no_speed() -> None:
    """The first bytes of a transfer that is continued are across, but did not come quickly now."""
    clock = Clock()
    statistics, big = Statistics(clock), item("big")
    statistics(Started(big))
    statistics(Moved(big, 90 * MIB))
    clock.now = 2
    statistics(Moved(big, 2 * MIB))
    assert statistics.speed() == MIB
    assert statistics.across == 92 * MIB


def test_the_speed_is_that_of_the_last_seconds() -> None:
    """The speed is that of the last seconds, so that it follows the network."""
    clock = Clock()
    statistics, big = Statistics(clock), item("big")
    statistics(Started(big))
    for second in range(1, 21):
        clock.now = second
        statistics(Moved(big, MIB if second <= 10 else 4 * MIB))
        statistics.speed()
    assert statistics.speed() == pytest.approx(4 * MIB, rel=0.01)


def test_the_share_is_not_known_before_all_is_planned() -> None:
    """While the listing goes on there is no share, and no time left."""
    statistics = Statistics(Clock())
    statistics(Planned(10, 100, False))
    assert statistics.share is None
    assert lines(statistics)[0].startswith("0 of 10+ files  0 B/s  0 B")


def test_a_listing_that_waits() -> None:
    """Before there are any items the retries of the listing are shown."""
    statistics = Statistics(Clock())
    statistics(Retried(None, unavailable()))
    assert lines(statistics) == ["listing  0 B/s  1 retry  0 B", "listing: 503 Service Unavailable, again in 2.1 s"]


def test_a_line_for_each_large_transfer_the_total_and_the_last_retry() -> None:
    """On a wide terminal all of it is there."""
    clock = Clock()
    statistics, big, small = Statistics(clock), item("folder/big.bin"), item("small.txt", 10)
    statistics(Planned(3, 100 * MIB + 10, True))
    for each in (big, small):
        statistics(Started(each))
    clock.now = 5
    for _ in range(50):
        statistics(Moved(big, MIB))
    statistics(Retried(big, unavailable()))
    shown = lines(statistics, 120)
    assert shown[0] == "folder/big.bin  50 %  50.0 MiB of 100.0 MiB"
    assert shown[1].startswith("━━━━━")
    assert shown[1].endswith("  0 of 3 files  49 %  10.0 MiB/s  0:05 left  1 retry  50.0 MiB of 100.0 MiB")
    assert shown[2] == "folder/big.bin: 503 Service Unavailable, again in 2.1 s"
    clock.now = 8
    assert lines(statistics, 120)[2].endswith(", tried again")
    clock.now = 80
    assert len(lines(statistics, 120)) == 2


def test_a_long_reason_leaves_room_for_the_wait() -> None:
    """A reason leaves out the name of the request, and its end is cut off to leave room for the wait."""
    statistics, big = Statistics(Clock()), item("big.bin")
    text = f"upload big.bin: 503 Service Unavailable: {'please be patient ' * 9}"
    statistics(Retried(big, Scheduled("upload", 2, 1.0, 2.1, Attempt(1, "HttpError", text, 1.0, 2.1))))
    shown = lines(statistics, 70)[1]
    assert shown.startswith("big.bin: 503 Service Unavailable: please be")
    assert shown.endswith("…, again in 2.1 s")


def test_failures_are_red() -> None:
    """The number of failures is red on a terminal that has colours."""
    statistics = Statistics(Clock())
    statistics(Planned(2, 20, True))
    statistics(Finished(Outcome(item("a", 10), Status.FAILED, error="no")))
    statistics(Finished(Outcome(item("b", 10), Status.SKIPPED, error="there")))
    assert "1 failed" in lines(statistics)[0]
    assert "1 skipped" in lines(statistics)[0]
    assert "\x1b[1;31m1 failed" in lines(statistics, color=True)[0]


def test_of_a_long_name_the_end_is_shown() -> None:
    """Of a path the end tells most, of a failure its reason."""
    statistics, big = Statistics(Clock()), item(f"{'long/' * 30}big.bin")
    statistics(Started(big))
    statistics(Retried(big, unavailable()))
    shown = lines(statistics, 60)
    assert shown[0].startswith("…")
    assert shown[0].endswith("long/big.bin  0 %  0 B of 100.0 MiB")
    assert shown[2].startswith("…")
    assert shown[2].endswith("/big.bin: 503 Service Unavailable, again in 2.1 s")


@given(st.integers(10, 200), st.text(min_size=1), st.integers(0, 2**50))
def test_lines_fit(width: int, name: str, size: int) -> None:
    """No line is longer than the terminal is wide, and no figure makes two lines of one."""
    clock = Clock()
    statistics, big = Statistics(clock), item(name, size + 8 * MIB)
    statistics(Planned(1, size + 8 * MIB, True))
    statistics(Started(big))
    clock.now = 3
    statistics(Moved(big, 8 * MIB))
    statistics(Retried(big, unavailable()))
    shown = lines(statistics, width)
    assert len(shown) == 3
    assert all(cell_len(line) <= width for line in shown)


def test_where_nobody_watches_only_a_standstill_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal retries are not worth a word, unless nothing has moved for long; then a line now and then."""
    clock = Clock()
    watch, big = Reporter(Statistics(clock), as_json=False, quiet=False), item("big\n.bin")
    watch.reports_standstill = True
    watch(Planned(1, 100 * MIB, True))
    watch(Started(big))
    told: list[float] = []
    for second in range(0, 100, 10):
        clock.now = second
        watch(Retried(big, unavailable()))
        if (line := capsys.readouterr().err) != "":
            assert line == f"nothing moved for {second} s: 503 Service Unavailable; again in 2.1 s\n"
            told.append(second)
    assert told == [30, 60, 90]
    watch(Moved(big, 1))
    clock.now = 110
    watch(Retried(big, unavailable()))
    assert capsys.readouterr().err == ""


def test_the_size_of_a_download_is_shown_once_it_is_known() -> None:
    """The first response tells the size of a single download; then a share and a bar are drawn."""
    clock = Clock()
    statistics, big = Statistics(clock), item("big.bin", None)
    statistics(Planned(1, None, True))
    statistics(Started(big))
    assert lines(statistics)[-1].startswith("0 of 1 files  0 B/s")
    statistics(Sized(big, 40 * MIB))
    clock.now = 1
    for _ in range(10):
        statistics(Moved(big, MIB))
    assert statistics.share == 0.25
    assert lines(statistics)[0] == "big.bin  25 %  10.0 MiB of 40.0 MiB"
    assert "  0:03 left" in lines(statistics)[1]


def test_a_failure_after_very_many_attempts_counts_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    """A report keeps the first and last attempts only, and the numbers of failures add up to all attempts."""
    attempts = [Attempt(number, "HTTP 503", "503 Service Unavailable", 1.0, 2.0) for number in range(1, 11)]
    report = Report("upload", tuple(attempts), 99.0, Reason.TIMEOUT, "timeout of 99 s reached", omitted=990)
    outcome = Outcome(item("a"), Status.FAILED, error="upload a: 503 Service Unavailable", report=report)
    Reporter(Statistics(Clock()), as_json=False, quiet=False)(Finished(outcome))
    tried = capsys.readouterr().err.splitlines()[1]
    assert tried.startswith("tried: gave up after 1000 attempts")
    assert tried.endswith("; 503 Service Unavailable (10 times), and 990 more")
