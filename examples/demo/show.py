"""The output of the demo: on stderr the progress of the Cloud Storage part, on stdout a table for each part.

Each table is followed by a conclusion in words.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from examples.demo.checker import Score, Tally
from examples.demo.fleet import share_after
from examples.demo.shared import GOAL, WINDOW, SharedResult
from examples.demo.storage import Snapshot
from examples.demo.upload import UploadResult
from forbear.cli.kit.output import columns, console, show_table, tell
from forbear_simulate import FleetOutcome
from forbear_simulate.cli.show import curves_of, show_chart

_BAD = ("lost", "duplicated", "corrupted", "too many")
_BARS = "▁▂▃▄▅▆▇█"
_FULL = 60
"""The height of a bar is the number of new requests, in eighths of this; from 7/8 of it on, the bar is full."""
_CELLS = 40
_LEGEND = "a bar: requests in 0.1 s; green: no faults, yellow: some faults, red: many faults; a dot: all callers wait\n"


class PlainProgress:
    """Prints one line to stderr for each contender when it has finished."""

    def watch(self, snapshot: Snapshot) -> None:
        """Do nothing: this display shows no intermediate progress."""

    def finished(self, name: str, score: Score, seconds: float) -> None:
        """Print a contender's numbers of requests, of those with faults and of retries, and its seconds, to stderr."""
        tell(f"{name}: {_totals(score, seconds)}")


class LiveProgress:
    """Shows a row for each contender: a bar for each snapshot, coloured by the share of requests that met a fault.

    A dot replaces the bar if there were no new requests while a caller waited. A row shows the last 40 of these, then
    figures.
    """

    def __init__(self, live: Live) -> None:
        self._live = live
        self._rows: dict[str, tuple[Text, Text]] = {}
        self._before = Snapshot("", 0, 0, 0)

    def watch(self, snapshot: Snapshot) -> None:
        """Add a bar for the requests since the last snapshot, or a dot if there were none and a caller waits.

        It also updates the figures beside the bars.
        """
        if snapshot.contender not in self._rows:
            self._rows[snapshot.contender] = Text(), Text()
            self._before = Snapshot(snapshot.contender, 0, 0, 0)
        bars, text = self._rows[snapshot.contender]
        requests, faults = snapshot.requests - self._before.requests, snapshot.faults - self._before.faults
        self._before = snapshot
        if requests:  # a third of them or more makes the bar red
            color = "green" if not faults else "yellow" if faults * 3 < requests else "red"
            bars.append(_BARS[min(requests * len(_BARS) // _FULL, len(_BARS) - 1)], color)
        elif snapshot.waiting:
            bars.append("·", "dim")
        text.plain = f"{snapshot.requests} requests, {snapshot.faults} met a fault, {snapshot.waiting} waiting"
        self._show()

    def finished(self, name: str, score: Score, seconds: float) -> None:
        """Show the totals beside the contender's bars, in place of the figures of its last snapshot."""
        self._rows[name] = self._rows[name][0], Text(_totals(score, seconds))
        self._show()

    def _show(self) -> None:
        table = columns("", "", "")
        table.show_header = False
        for name, (bars, text) in self._rows.items():
            table.add_row(f"[bold]{name}[/]", bars[-_CELLS:], text)
        self._live.update(Group(table, Text(_LEGEND, "dim")), refresh=True)


@contextmanager
def progress_display() -> Generator[LiveProgress | PlainProgress]:
    """Yield a live display if stderr is a terminal with cursor control and a Unicode encoding, else a plain one."""
    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(stderr=True, highlight=False, color_system=None if plain else "auto")
    if not console.is_terminal or console.is_dumb_terminal or not console.encoding.startswith("utf"):
        yield PlainProgress()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield LiveProgress(live)


def _totals(score: Score, seconds: float) -> str:
    return f"{score.requests} requests, {score.faults} met a fault, {score.retries} were retries, {seconds:.1f} s"


def show_storage(scores: Mapping[str, Score], seed: int) -> None:
    """Print the Cloud Storage results to stdout: a table, a conclusion, and why operations failed with forbear.

    `seed` is named in the message about a bug, if forbear broke something.
    """
    _table("Cloud Storage", {name: score.counts for name, score in scores.items()})
    naive, ours = scores["naive"], scores["forbear"]
    if ours.is_clean:
        broken = sum(naive.counts[finding] for finding in _BAD if finding in naive.counts)
        _say(
            f"With the same faults, attempts and backoff, repeating everything that fails broke {broken} operations, "
            "and repeating what is safe broke none."
        )
    else:
        _say_bug(seed)
    _say(f"{_failures(ours)}\n")


def show_grants(tallies: Mapping[str, Tally], seed: int) -> None:
    """Print the results of the IAM part to stdout: a table and a conclusion."""
    _tallies("IAM", tallies)
    none, naive, ours = (tallies[name] for name in ("none", "naive", "forbear"))
    _say(
        f"none leaves {none.failed} conflicts to the caller. After a lost response naive does not know whether its "
        f"member was added, and added {naive.too_many} too many."
    )
    _conclude(ours, "forbear.update reads the policy again and looks for its member: each member is there once", seed)


def show_counters(tallies: Mapping[str, Tally], seed: int) -> None:
    """Print the results of the Redis part to stdout: a table and a conclusion."""
    _tallies("Redis", tallies)
    naive, ours = tallies["naive"], tallies["forbear"]
    _say(
        "naive (redis-py with its defaults) repeats commands that may have been executed, and counted "
        f"{naive.too_many} too many."
    )
    _conclude(ours, "forbear.update stores a token with each change and looks for it: the counters are right", seed)


def show_upload(upload: UploadResult, seed: int) -> None:
    """Print the results of the upload part to stdout: a table and a conclusion."""
    table = columns("Upload", "bytes")
    table.columns[1].justify = "right"
    for text, count in (
        ("size of the file", upload.size),
        ("kept by the server when the process died", upload.kept),
        ("the same command, run again, sent from byte", upload.continued_at),
        ("sent by both processes", upload.sent),
    ):
        table.add_row(f"[bold]{text}[/]", "nothing" if count is None else f"{count:,}".replace(",", " "))
    show_table(table)
    if not upload.is_clean:
        _say_bug(seed)
    else:
        share = _share(upload.sent - upload.size, upload.size)
        _say(f"kill -9 cost {share} of the file, which was in transit; the object exists once, with the right bytes.\n")


def show_fleets(outcomes: Mapping[str, FleetOutcome]) -> None:
    """Print a chart for each fleet to stdout, with one scale, and a conclusion."""
    top = max(curves_of(outcome).top for outcome in outcomes.values())
    for name, outcome in outcomes.items():
        show_chart(outcome, f"A fleet in an outage, {name}", top)
    without, with_budget = (share_after(outcome) for outcome in outcomes.values())
    _say(
        f"After the outage {100 * without:.0f} % of the calls succeed without a budget: the retries keep the service "
        f"overloaded, although it is well. With a budget it is {100 * with_budget:.0f} %.\n"
    )


def show_shared(shared: SharedResult, seed: int) -> None:
    """Print the results of the shared part to stdout: a table and a conclusion."""
    table = columns("Shared retry budget", "number")
    table.columns[1].justify = "right"
    for text, number in (
        (f"successes of {shared.processes} processes, of which {shared.killed} were killed", shared.successes),
        ("retries granted", shared.granted),
        ("retries refused", shared.refused),
        ("the bound on granted retries", int(shared.bound)),
        ("one bucket that sees all calls would grant", shared.unshared),
    ):
        table.add_row(f"[bold]{text}[/]", f"{number:,}".replace(",", " "))
    show_table(table)
    if not shared.is_clean:
        _say_bug(seed)
        return
    _say(
        f"When Valkey stopped, {shared.lost} processes noticed it and lived on credit of their own. "
        + (
            "After its restart all of them had it back."
            if shared.back == shared.lost
            else f"{WINDOW} s after the first one had it back, {shared.back} of them had."
        )
    )
    share = f"{100 * shared.share:.0f} % of the retries of one bucket"
    if shared.share >= GOAL:
        _say(f"Through kill -9 and the restart the fleet got {share}, and never more than the bound.\n")
    else:
        _say(f"The fleet got {share}, less than the usual {100 * GOAL:.0f} %, and never more than the bound.\n")


def show_end() -> None:
    """Print what to read next: other commands and pages of the documentation."""
    _say(
        "Read on: `forbear explain METHOD URL` says what may be repeated and why; docs/cloud_storage.md has the list, "
        "docs/read_modify_write.md is about forbear.update, docs/transfer.md about forbear cp, "
        "docs/simulate.md about fleets, docs/shared-budget.md about budgets that a fleet shares."
    )


def _table(title: str, rows: Mapping[str, Mapping[str, int]]) -> None:
    table = columns(title, *next(iter(rows.values())))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in rows.items():
        table.add_row(f"[bold]{name}[/]", *(_colored(finding, count) for finding, count in counts.items()))
    show_table(table)


def _colored(finding: str, count: int) -> str:
    if finding not in _BAD:
        return str(count)
    return f"[bold red]{count}[/]" if count else "[green]0[/]"


def _tallies(title: str, tallies: Mapping[str, Tally]) -> None:
    rows = {name: asdict(tally) for name, tally in tallies.items()}
    _table(title, {name: {word.replace("_", " "): count for word, count in row.items()} for name, row in rows.items()})


def _conclude(ours: Tally, success: str, seed: int) -> None:
    if not ours.is_clean:
        _say_bug(seed)
    elif ours.counted == ours.requested:
        _say(f"{success}.\n")
    else:
        _say(f"forbear gave up {ours.failed + ours.unknown} times, reported it, and broke nothing.\n")


def _share(part: int, whole: int) -> str:
    return "nothing" if not part else f"{100 * part / whole:.2g} %"


def _say(text: str) -> None:
    console().print(text)


def _say_bug(seed: int) -> None:
    _say(f"[red]forbear broke something: that is a bug, please report it with --seed {seed}.[/]")


def _failures(score: Score) -> str:
    """Return sentences about forbear's failed operations: how many are unsafe to repeat, how many had happened."""
    failed, unsafe = score.counts["failed"], score.unrepeatable
    if failed == unsafe:
        return (
            f"The {failed} operations that forbear left failed are unsafe to repeat, and nothing could tell the client "
            f"whether they had happened ({score.happened} had)."
        )
    return (
        f"Of the {failed} operations that forbear left failed ({score.happened} had happened) {unsafe} are unsafe to "
        f"repeat. The other {failed - unsafe} failed on all attempts or for another reason."
    )
