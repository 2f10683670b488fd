"""What the demo prints on stdout: a table for each part, and what it shows; the words follow the figures."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from forbear.cli.output import columns, console, show_table

if TYPE_CHECKING:
    from forbear.cli.demo.killed import Killed
    from forbear.cli.demo.referee import Score
    from forbear.cli.demo.tally import Tally

_BAD = ("lost", "duplicated", "corrupted", "too many")


def show_storage(scores: "Mapping[str, Score]", seed: int) -> None:
    """The part about Cloud Storage."""
    _table("Cloud Storage", {name: score.counts for name, score in scores.items()})
    naive, ours = scores["naive"], scores["forbear"]
    if ours.is_clean:
        broken = sum(naive.counts[outcome] for outcome in _BAD if outcome in naive.counts)
        _say(
            f"The same storm, attempts and backoff: repeating whatever fails broke {broken} operations, "
            "repeating what is safe broke none."
        )
    else:
        _say_bug(seed)
    _say(f"{_failures(ours)}\n")


def show_grants(tallies: "Mapping[str, Tally]", seed: int) -> None:
    """The part about IAM."""
    _tallies("IAM", tallies)
    none, naive, ours = (tallies[name] for name in ("none", "naive", "forbear"))
    _say(
        f"none leaves {none.failed} conflicts to the caller; naive does not know what was done when a reply was lost, "
        f"and added {naive.too_many} too many."
    )
    _verdict(ours, "forbear.update reads again, and looks whether its member is there: each is, once", seed)


def show_counters(tallies: "Mapping[str, Tally]", seed: int) -> None:
    """The part about Redis."""
    _tallies("Redis", tallies)
    naive, ours = tallies["naive"], tallies["forbear"]
    _say(f"redis-py as it comes (naive) repeats what may have been executed, and counted {naive.too_many} too many.")
    _verdict(ours, "forbear.update leaves a token with each change, and looks for it: the counters are right", seed)


def show_upload(upload: "Killed", seed: int) -> None:
    """The part about transfers."""
    table = columns("Upload", "")
    table.columns[1].justify = "right"
    for text, count in (
        ("the file has", upload.size),
        ("the server had, when the process was dead", upload.kept),
        ("the same command, run again, sent from byte", upload.continued_at),
        ("both have sent", upload.sent),
    ):
        table.add_row(f"[bold]{text}[/]", "nothing" if count is None else f"{count:,}".replace(",", " "))
    show_table(table)
    if not upload.is_clean:
        _say_bug(seed)
    else:
        more = _share(upload.sent - upload.size, upload.size)
        _say(f"Of the file {more} was under way at kill -9, and went again; the object is there once, and right.\n")


def show_end() -> None:
    """Where to read on."""
    console().print(
        "Read on: `forbear explain METHOD URL` says what may be repeated and why; docs/cloud_storage.md has the list, "
        "docs/read_modify_write.md is about forbear.update, docs/transfer.md about forbear cp."
    )


def _table(title: str, rows: Mapping[str, Mapping[str, int]]) -> None:
    table = columns(title, *next(iter(rows.values())))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in rows.items():
        table.add_row(f"[bold]{name}[/]", *(_colored(outcome, count) for outcome, count in counts.items()))
    show_table(table)


def _colored(outcome: str, count: int) -> str:
    if outcome not in _BAD:
        return str(count)
    return f"[bold red]{count}[/]" if count else "[green]0[/]"


def _tallies(title: str, tallies: "Mapping[str, Tally]") -> None:
    rows = {name: asdict(tally) for name, tally in tallies.items()}
    _table(title, {name: {word.replace("_", " "): count for word, count in row.items()} for name, row in rows.items()})


def _verdict(ours: "Tally", promise: str, seed: int) -> None:
    if not ours.is_clean:
        _say_bug(seed)
    elif ours.counted == ours.asked:
        _say(f"{promise}.\n")
    else:
        _say(f"forbear gave up {ours.failed + ours.unknown} times, told so, and broke nothing.\n")


def _share(part: int, whole: int) -> str:
    return "nothing" if not part else f"{100 * part / whole:.2g} %"


def _say(text: str) -> None:
    console().print(text)


def _say_bug(seed: int) -> None:
    _say(f"[red]forbear broke something: that is a bug, please report it with --seed {seed}.[/]")


def _failures(score: "Score") -> str:
    """Why forbear gave up where it did; the words follow the figures."""
    failed, unsafe = score.counts["failed"], score.unrepeatable
    if failed == unsafe:
        return (
            f"The {failed} that forbear left failed are unsafe to repeat, and nobody could tell the client whether "
            f"they had happened ({score.happened} had)."
        )
    return (
        f"Of the {failed} that forbear left failed ({score.happened} had happened) {unsafe} are unsafe to repeat; "
        f"{failed - unsafe} are not, and failed on all attempts or for another reason."
    )
