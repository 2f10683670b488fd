"""What is shown of transfers while they run: the figures, the words for them, and lines that fit the terminal."""

import io
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from forbear.cli.transfers.reporter import Reporter, of_bytes, of_clock, of_span
from forbear.cli.transfers.screen import Screen
from forbear.cli.transfers.statistics import Progress
from forbear.cli.transfers.watch import Plain
from forbear.core.events import Scheduled
from forbear.core.report import Attempt
from forbear.transfer.items import Item, Outcome, Status

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


def lines(progress: Progress, width: int = 100, *, color: bool = False) -> list[str]:
    """What a terminal of that width shows."""
    console = Console(file=io.StringIO(), width=width, force_terminal=color, color_system="standard" if color else None)
    with console.capture() as captured:
        console.print(Screen(progress))
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
def test_sizes(count: float, text: str) -> None:
    """A size has the unit in which it is short."""
    assert of_bytes(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (61, "1:01"), (3_723, "1:02:03"), (200_000, "2 days")]
)
def test_times_to_wait(seconds: float, text: str) -> None:
    """A time to wait is as on a clock."""
    assert of_clock(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.24, "0.2 s"), (42, "42 s"), (119.6, "120 s"), (150, "2:30")])
def test_times_that_have_passed(seconds: float, text: str) -> None:
    """A time that has passed is in seconds, unless it was long."""
    assert of_span(seconds) == text


def test_the_figures_of_transfers() -> None:
    """Bytes across are those of what is over and of what is under way; bytes that must go again are taken back."""
    progress, one, two = Progress(Clock()), item("one"), item("two", 50 * MIB)
    progress.planned(2, 150 * MIB, True)
    for each in (one, two):
        progress.began(each)
    progress.moved(one, 40 * MIB)
    progress.moved(one, -10 * MIB)
    progress.moved(two, 25 * MIB)
    assert progress.across == 55 * MIB
    progress.ended(Outcome(two, Status.DONE, bytes=50 * MIB))
    assert (progress.across, progress.done, progress.ended_items) == (80 * MIB, 1, 1)
    assert progress.share == pytest.approx(80 / 150)
    assert [flight.item.source for flight in progress.largest(4, 1)] == ["one"]
    progress.ended(Outcome(one, Status.FAILED, error="no"))
    assert (progress.across, progress.size, progress.share) == (50 * MIB, 50 * MIB, 1.0)


def test_what_was_there_before_has_no_speed() -> None:
    """The first bytes of a transfer that is continued are across, but did not come quickly now."""
    clock = Clock()
    progress, big = Progress(clock), item("big")
    progress.began(big)
    progress.moved(big, 90 * MIB)
    clock.now = 2
    progress.moved(big, 2 * MIB)
    assert progress.speed() == MIB
    assert progress.across == 92 * MIB


def test_the_speed_is_that_of_late() -> None:
    """What counts for the speed are the last seconds, so that it follows what the network does now."""
    clock = Clock()
    progress, big = Progress(clock), item("big")
    progress.began(big)
    for second in range(1, 21):
        clock.now = second
        progress.moved(big, MIB if second <= 10 else 4 * MIB)
        progress.speed()
    assert progress.speed() == pytest.approx(4 * MIB, rel=0.01)


def test_the_share_is_not_known_before_all_is_planned() -> None:
    """While the listing goes on there is no share, and no time left."""
    progress = Progress(Clock())
    progress.planned(10, 100, False)
    assert progress.share is None
    assert lines(progress)[0].startswith("0 of 10+ files  0 B/s  0 B")


def test_a_listing_that_waits() -> None:
    """Before there are any items the retries of the listing are shown."""
    progress = Progress(Clock())
    progress.retried(None, unavailable())
    assert lines(progress) == ["listing  0 B/s  1 retry  0 B", "listing: 503 Service Unavailable, again in 2.1 s"]


def test_a_line_for_each_large_transfer_the_total_and_the_last_retry() -> None:
    """On a wide terminal all of it is there."""
    clock = Clock()
    progress, big, small = Progress(clock), item("folder/big.bin"), item("small.txt", 10)
    progress.planned(3, 100 * MIB + 10, True)
    for each in (big, small):
        progress.began(each)
    clock.now = 5
    for _ in range(50):
        progress.moved(big, MIB)
    progress.retried(big, unavailable())
    shown = lines(progress, 120)
    assert shown[0] == "folder/big.bin  50 %  50.0 MiB of 100.0 MiB"
    assert shown[1].startswith("━━━━━")
    assert shown[1].endswith("  0 of 3 files  49 %  10.0 MiB/s  0:05 left  1 retry  50.0 MiB of 100.0 MiB")
    assert shown[2] == "folder/big.bin: 503 Service Unavailable, again in 2.1 s"
    clock.now = 8
    assert lines(progress, 120)[2].endswith(", tried again")
    clock.now = 80
    assert len(lines(progress, 120)) == 2


def test_a_long_reason_leaves_room_for_the_wait() -> None:
    """What was asked for is left out of a reason, and of what is left the end gives way."""
    progress, big = Progress(Clock()), item("big.bin")
    text = f"upload big.bin: 503 Service Unavailable: {'please be patient ' * 9}"
    progress.retried(big, Scheduled("upload", 2, 1.0, 2.1, Attempt(1, "HttpError", text, 1.0, 2.1)))
    shown = lines(progress, 70)[1]
    assert shown.startswith("big.bin: 503 Service Unavailable: please be")
    assert shown.endswith("…, again in 2.1 s")


def test_failures_stand_out() -> None:
    """What failed is counted in red, on a terminal that has colours."""
    progress = Progress(Clock())
    progress.planned(2, 20, True)
    progress.ended(Outcome(item("a", 10), Status.FAILED, error="no"))
    progress.ended(Outcome(item("b", 10), Status.SKIPPED, error="there"))
    assert "1 failed" in lines(progress)[0]
    assert "1 skipped" in lines(progress)[0]
    assert "\x1b[1;31m1 failed" in lines(progress, color=True)[0]


def test_of_a_long_name_the_end_is_shown() -> None:
    """Of a path the end tells most, of a failure its reason."""
    progress, big = Progress(Clock()), item(f"{'long/' * 30}big.bin")
    progress.began(big)
    progress.retried(big, unavailable())
    shown = lines(progress, 60)
    assert shown[0].startswith("…")
    assert shown[0].endswith("long/big.bin  0 %  0 B of 100.0 MiB")
    assert shown[2].startswith("…")
    assert shown[2].endswith("/big.bin: 503 Service Unavailable, again in 2.1 s")


@given(st.integers(10, 200), st.text(min_size=1), st.integers(0, 2**50))
def test_lines_fit(width: int, name: str, size: int) -> None:
    """No line is longer than the terminal is wide, and no figure makes two lines of one."""
    clock = Clock()
    progress, big = Progress(clock), item(name, size + 8 * MIB)
    progress.planned(1, size + 8 * MIB, True)
    progress.began(big)
    clock.now = 3
    progress.moved(big, 8 * MIB)
    progress.retried(big, unavailable())
    shown = lines(progress, width)
    assert len(shown) == 3
    assert all(cell_len(line) <= width for line in shown)


def test_where_nobody_watches_only_a_standstill_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal retries are not worth a word, unless nothing has moved for long; then a line now and then."""
    clock = Clock()
    watch, big = Plain(Reporter(as_json=False, quiet=False), Progress(clock)), item("big\n.bin")
    watch.planned(1, 100 * MIB, True)
    watch.began(big)
    told: list[float] = []
    for second in range(0, 100, 10):
        clock.now = second
        watch.retried(big, unavailable())
        if (line := capsys.readouterr().err) != "":
            assert line == f"nothing moved for {second} s: 503 Service Unavailable; again in 2.1 s\n"
            told.append(second)
    assert told == [30, 60, 90]
    watch.moved(big, 1)
    clock.now = 110
    watch.retried(big, unavailable())
    assert capsys.readouterr().err == ""


def test_a_size_that_the_plan_did_not_know() -> None:
    """Of a single download the size is known when the first reply is there, and then there are a share and a bar."""
    clock = Clock()
    progress, big = Progress(clock), item("big.bin", None)
    progress.planned(1, None, True)
    progress.began(big)
    assert lines(progress)[-1].startswith("0 of 1 files  0 B/s")
    progress.sized(big, 40 * MIB)
    clock.now = 1
    for _ in range(10):
        progress.moved(big, MIB)
    assert progress.share == 0.25
    assert lines(progress)[0] == "big.bin  25 %  10.0 MiB of 40.0 MiB"
    assert "  0:03 left" in lines(progress)[1]
