"""`forbear run`: the options of the command. How programs are run and repeated is not known here."""

import os
from typing import Unpack

import click

from forbear.cli import values
from forbear.cli.options import Chosen, laid_over, policy_options
from forbear.cli.output import BadInput
from forbear.core.backoff import Exponential
from forbear.core.decide import Limits

_EPILOG = """\b
Exit codes: that of the last attempt; 128 + n where signal n ended it or the
wait for the next one; 124 where it was ended for taking too long; 126 where
COMMAND cannot be run, 127 where it is not found; 2 for bad usage."""


@click.command(epilog=_EPILOG, context_settings={"allow_interspersed_args": False})
@policy_options
@click.option(
    "--attempt-timeout",
    type=values.duration,
    metavar="S",
    help="End an attempt, with all that it started, after so long, or when --timeout is over.",
)
@click.option(
    "--grace",
    type=values.duration_from_zero,
    default="5",
    show_default=True,
    metavar="S",
    help="How long after the SIGTERM that ends an attempt SIGKILL follows.",
)
@click.option(
    "--on",
    type=values.exit_codes,
    metavar="CODES",
    help="Exit codes worth another attempt, such as 1,75,100-110. Default: all but 2 (usage), 126 and 127 (cannot run, "
    "not found) and 128 + SIGHUP, SIGINT, SIGQUIT, SIGTERM or SIGPIPE.",
)
@click.option("--stop-on", type=values.exit_codes, metavar="CODES", help="Exit codes that end the run.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about retries.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    command: tuple[str, ...],
    on: frozenset[int] | None,
    stop_on: frozenset[int] | None,
    attempt_timeout: float | None,
    grace: float,
    quiet: bool,
    **chosen: Unpack[Chosen],
) -> None:
    """Run COMMAND, and again while it fails in a way that may pass.

    At most 5 attempts, with waits of up to 1, 2, 4 and 8 s between them (full jitter), and no timeout.

    Each attempt finds its number in FORBEAR_ATTEMPT and the same input on stdin. A signal is passed on to COMMAND, and
    no attempt follows it. Durations are in seconds (90, 0.5) or have units (1m30s, 500ms).
    """
    limits, backoff = laid_over(Limits(timeout=None), Exponential(), chosen)
    if os.name != "posix":
        raise BadInput("`forbear run` needs process groups and signals, which this system lacks", "use WSL")
    from forbear.cli.repeat import TRANSIENT, repeat  # needs such a system

    code = repeat(
        command,
        limits,
        backoff,
        transient=(TRANSIENT if on is None else on) - (stop_on or frozenset()),
        attempt_timeout=attempt_timeout,
        grace=grace,
        quiet=quiet,
    )
    ctx.exit(code)
