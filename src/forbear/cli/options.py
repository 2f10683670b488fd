"""The options that change the limits and the backoff of a policy."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from forbear.cli import values
from forbear.cli.output import BadInput
from forbear.core.backoff import JITTERS, Constant, Exponential

if TYPE_CHECKING:
    from forbear.core.decide import Limits
    from forbear.protocols import Backoff

_EXPONENTIAL = ("initial", "maximum", "multiplier", "jitter")

F = TypeVar("F", bound=Callable[..., Any])


class PolicyOptions(TypedDict):
    """The values of the options that `policy_options` adds; None for an option that was not used."""

    attempts: int | values.NoLimit | None
    timeout: float | values.NoLimit | None
    initial: float | None
    maximum: float | None
    multiplier: float | None
    jitter: str | None
    constant: float | None


def policy_options(function: F) -> F:
    """Add the options for limits and backoff to a command, which gets them as the keywords of `PolicyOptions`."""
    return add_options(
        function,
        (
            click.option(
                "--attempts", type=values.count_or_none, metavar="N", help="Attempts, including the first; or none."
            ),
            click.option(
                "--timeout",
                type=values.duration_or_none,
                metavar="S",
                help="Start no wait that would end later than this after the start; or none.",
            ),
            click.option("--initial", type=values.duration, metavar="S", help="First step of the backoff."),
            click.option("--maximum", type=values.duration, metavar="S", help="Longest step of the backoff."),
            click.option("--multiplier", type=float, metavar="X", help="Growth from one step to the next."),
            click.option("--jitter", type=click.Choice(JITTERS), help="Random part of the waits."),
            click.option(
                "--constant", type=values.duration_from_zero, metavar="S", help="Always wait this long, without jitter."
            ),
        ),
    )


def add_options(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """Add options, which are decorators of click, to a command; its help shows them in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def apply_options(limits: "Limits", backoff: "Backoff", options: PolicyOptions) -> "tuple[Limits, Backoff]":
    """Return the limits and the backoff, changed by the options that were used.

    `--constant` replaces the backoff; other options of the backoff change it, or the default Exponential if it is of
    another type. Raises BadInput if options are invalid or contradict each other.
    """
    attempts = _limit(options["attempts"], limits.attempts)
    timeout = _limit(options["timeout"], limits.timeout)
    if attempts is None and timeout is None:
        raise BadInput(
            "`--attempts` and `--timeout` must not both be none, or a run may never end", "give one of them a limit"
        )
    try:
        return limits.replace(attempts=attempts, timeout=timeout), _backoff(backoff, options)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


def _limit(value: "float | values.NoLimit | None", default: float | None) -> float | None:
    if value is None:
        return default
    return None if isinstance(value, values.NoLimit) else value


def _backoff(backoff: "Backoff", options: PolicyOptions) -> "Backoff":
    fields = {name: value for name, value in options.items() if name in _EXPONENTIAL and value is not None}
    constant = options["constant"]
    if constant is not None:
        if fields:
            raise BadInput(f"`--constant` does not go with `--{next(iter(fields))}`", "leave one of them out")
        return Constant(constant)
    if not fields:
        return backoff
    start = backoff if isinstance(backoff, Exponential) else Exponential()
    return start.replace(**fields)
