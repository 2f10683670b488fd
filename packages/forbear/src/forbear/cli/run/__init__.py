"""`forbear run`: the options of the command."""

import os
from typing import Unpack

import click

from forbear.cli.kit import values
from forbear.cli.kit.completion import complete_profile
from forbear.cli.kit.options import (
    FUNCTION_LIMITS,
    LIMITS_AND_BACKOFF,
    POLICY_OPTIONS,
    GroupedCommand,
    PolicyOptions,
    apply_options,
    make_shared_budget_option,
)
from forbear.cli.kit.output import BadInput
from forbear.cli.kit.profiles import find_named_policy
from forbear.policy import Policy

_EPILOG = """Exit codes: the code of the last attempt; 128 + n if signal n ended it or the wait
for the next one; 124 if the attempt took too long; 126 if COMMAND cannot be
executed, 127 if it is not found; 2 for bad usage."""


@click.command(
    cls=GroupedCommand,
    params=[*POLICY_OPTIONS, make_shared_budget_option(LIMITS_AND_BACKOFF)],
    epilog=_EPILOG,
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--profile",
    metavar="NAME",
    help="Take the limits and the backoff of a policy, as in `forbear schedule`.",
    shell_complete=complete_profile,
)
@click.option(
    "--attempt-timeout",
    type=values.duration,
    metavar="S",
    help="End an attempt, with all processes it started, after this time, or when --timeout is over.",
)
@click.option(
    "--grace",
    type=values.duration_from_zero,
    default="5",
    show_default=True,
    metavar="S",
    help="Time between the SIGTERM that ends an attempt and the SIGKILL that follows.",
)
@click.option(
    "--on",
    type=values.exit_codes,
    metavar="CODES",
    help="Exit codes to retry, such as 1,75,100-110. Default: all but 2 (usage), 126 and 127 (cannot run, "
    "not found) and 128 + SIGHUP, SIGINT, SIGQUIT, SIGTERM or SIGPIPE.",
)
@click.option(
    "--stop-on",
    type=values.exit_codes,
    metavar="CODES",
    help="Exit codes not to retry, whatever else is used; 124 stands for --attempt-timeout.",
)
@click.option(
    "--on-output",
    type=values.pattern,
    multiple=True,
    metavar="REGEX",
    help="Retry a failure if a line of its stdout or stderr matches; exit codes only if --on names them.",
)
@click.option(
    "--stop-on-output",
    type=values.pattern,
    multiple=True,
    metavar="REGEX",
    help="Do not retry a failure if a line of its stdout or stderr matches, whatever else is used.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing about retries.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def command(
    ctx: click.Context,
    command: tuple[str, ...],
    on: frozenset[int] | None,
    stop_on: frozenset[int] | None,
    on_output: tuple[str, ...],
    stop_on_output: tuple[str, ...],
    attempt_timeout: float | None,
    grace: float,
    quiet: bool,
    profile: str | None,
    shared_budget: str | None,
    **options: Unpack[PolicyOptions],
) -> None:
    """Run a program, and run it again after a transient failure.

    Every exit code but 2 (wrong usage), 126 and 127 (it cannot be run) and those of signals by which users end a
    program counts as transient, because few programs say more; name those that are by --on.

    At most 5 attempts, with waits of up to 1, 2, 4 and 8 s between them (full jitter), and no timeout. Of a `--profile`
    only the limits and the waits count, not which errors it retries.

    Each attempt gets its number in FORBEAR_ATTEMPT and the same input on stdin. forbear passes signals on to COMMAND,
    and then makes no further attempt. Durations are in seconds (90, 0.5) or have units (1m30s, 500ms).
    """
    chosen = Policy(OSError, FUNCTION_LIMITS) if profile is None else find_named_policy(profile)
    limits, backoff = apply_options(chosen.limits, chosen.backoff, options)
    if os.name != "posix":
        raise BadInput("`forbear run` needs process groups and signals, which this system lacks", "use WSL")
    from forbear.cli.run.repeat import ExitRules, repeat
    from forbear.cli.run.streams import DirectOutput, WatchedOutput  # these need a POSIX system

    code = repeat(
        command,
        limits,
        backoff,
        rules=ExitRules(on, stop_on or frozenset(), by_output=bool(on_output)),
        output=WatchedOutput(on_output, stop_on_output) if on_output or stop_on_output else DirectOutput(),
        attempt_timeout=attempt_timeout,
        grace=grace,
        quiet=quiet,
        shared=shared_budget,
    )
    ctx.exit(code)
