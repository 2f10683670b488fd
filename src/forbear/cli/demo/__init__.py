"""`forbear demo`: one workload, three ways to retry, and what the server says of it afterwards.

How is counted. Everything goes by the server's own journal of effects and by its state in the end, compared with what
the client was told. Every operation counts once, by the worst that is true of it:

- corrupted: bytes that are not the right ones were stored, or handed to a reader who was told that all is well;
- duplicated: more than one effect, whatever the client was told;
- lost: the client was told that it is done, and it has no effect, or a later repeat of an older write has undone it;
- failed: the client was told of an error, even if the one effect is there: it knows that it does not know;
- completed: the client was told that it is done, and the effect is there once, or the right bytes were read.

This module knows the options and the words; the contest knows the rest.
"""

import json
from typing import TYPE_CHECKING

import click

from forbear.cli.output import BadInput, columns, console, show_table, tell
from forbear.run.switch import is_off

if TYPE_CHECKING:
    from forbear.cli.demo.referee import Score

_SEED = 7
_BAD = ("lost", "duplicated", "corrupted")


@click.command(epilog="Exit codes: 0 if forbear lost, duplicated and corrupted nothing, else 1.")
@click.option(
    "--seed", type=int, default=_SEED, show_default=True, help="Which storm; the same one gives the same counts."
)
@click.option(
    "--each", type=click.IntRange(1, 500), default=20, show_default=True, help="How many operations of every kind."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, seed: int, each: int, as_json: bool) -> None:
    """Show what retries do to data in a storm of faults.

    One workload is sent three times: without retries (`none`), with a loop that repeats whatever fails (`naive`), and
    with httpx and forbear's RetryTransport (`forbear`): over real sockets to an embedded Cloud Storage, in compressed
    time. The storm is the same each time: 503, 429 with Retry-After, connections reset before and after the server
    acted, torn replies, half chunks.

    Then the server's journal and state are compared with what the client was told. Each operation counts once, by the
    worst that is true of it. Corrupted: wrong bytes stored, or read without an error. Duplicated: more than one effect.
    Lost: told that it is done, but there is no effect, or a late repeat of an older write has undone it. Failed: told
    of an error, even if the effect is there. Completed: told that it is done, and so it is, once.
    """
    from forbear.cli.demo.contest import FACTOR, contest  # needs the cloud, httpx and rich
    from forbear.cli.demo.screen import screen

    if is_off():
        raise BadInput("retries are off, so there is nothing to show", "unset FORBEAR_DISABLED")
    tell(f"one workload, three times, through the same storm (--seed {seed}); time runs {FACTOR} times faster")
    results: dict[str, tuple[Score, float]] = {}
    with screen() as shown:
        for name, score, seconds in contest(seed, each, shown.watch):
            results[name] = score, seconds
            shown.finished(name, score, seconds)
    if as_json:
        contenders = {name: _figures(score, seconds) for name, (score, seconds) in results.items()}
        click.echo(json.dumps({"contenders": contenders}))
    else:
        _show({name: score for name, (score, _) in results.items()}, seed)
    ctx.exit(0 if results["forbear"][0].is_clean else 1)


def _figures(score: "Score", seconds: float) -> dict[str, float]:
    return {**score.counts, "requests": score.requests, "retries": score.retries, "seconds": round(seconds, 2)}


def _show(scores: "dict[str, Score]", seed: int) -> None:
    table = columns("", *next(iter(scores.values())).counts)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, score in scores.items():
        cells = (_colored(outcome, count) for outcome, count in score.counts.items())
        table.add_row(f"[bold]{name}[/]", *cells)
    show_table(table)
    naive, ours = scores["naive"], scores["forbear"]
    out = console()
    if ours.is_clean:
        broken = sum(naive.counts[outcome] for outcome in _BAD)
        out.print(
            f"The same storm, attempts and backoff: repeating whatever fails broke {broken} operations, "
            "repeating what is safe broke none."
        )
    else:
        out.print(f"[red]forbear broke something: that is a bug, please report it with --seed {seed}.[/]")
    out.print(_failures(ours))
    out.print(
        "\nRead on: `forbear explain METHOD URL` says what may be repeated and why; docs/cloud_storage.md has the list."
    )


def _colored(outcome: str, count: int) -> str:
    if outcome not in _BAD:
        return str(count)
    return f"[bold red]{count}[/]" if count else "[green]0[/]"


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
