"""The options that describe a policy, shared by commands: limits and backoff, laid over what a command starts from."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from forbear.cli import values
from forbear.cli.output import BadInput
from forbear.core.backoff import JITTERS, Constant, Exponential
from forbear.core.decide import Limits

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff

F = TypeVar("F", bound=Callable[..., Any])


class Chosen(TypedDict):
    """What the user said; None where nothing."""

    attempts: int | values.NoLimit | None
    timeout: float | values.NoLimit | None
    initial: float | None
    maximum: float | None
    multiplier: float | None
    jitter: str | None
    constant: float | None


def policy_options(function: F) -> F:
    """Add the options to a command; it receives them as the keywords of `Chosen`."""
    for option in reversed(
        (
            click.option(
                "--attempts", type=values.count_or_none, metavar="N", help="Attempts, the first included; or none."
            ),
            click.option(
                "--timeout",
                type=values.duration_or_none,
                metavar="S",
                help="No wait ends later than this after the start; or none.",
            ),
            click.option("--initial", type=values.duration, metavar="S", help="First step of the backoff."),
            click.option("--maximum", type=values.duration, metavar="S", help="Longest step of the backoff."),
            click.option("--multiplier", type=float, metavar="X", help="Growth from one step to the next."),
            click.option("--jitter", type=click.Choice(JITTERS), help="How randomness enters the waits."),
            click.option(
                "--constant", type=values.duration_from_zero, metavar="S", help="Wait always the same, without jitter."
            ),
        )
    ):
        function = option(function)
    return function


def laid_over(limits: Limits, backoff: "Backoff", chosen: Chosen) -> "tuple[Limits, Backoff]":
    """The limits and the backoff with what the user chose in place; BadInput for what does not go together."""
    attempts = _limit(chosen["attempts"], limits.attempts)
    timeout = _limit(chosen["timeout"], limits.timeout)
    if attempts is None and timeout is None:
        raise BadInput(
            "`--attempts` and `--timeout` must not both be none, or a run may never end", "give one of them a limit"
        )
    try:
        return limits.replace(attempts=attempts, timeout=timeout), _backoff(backoff, chosen)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None


def _limit(said: "float | values.NoLimit | None", otherwise: float | None) -> float | None:
    if said is None:
        return otherwise
    return None if isinstance(said, values.NoLimit) else said


def _backoff(backoff: "Backoff", chosen: Chosen) -> "Backoff":
    exponential = {
        name: value
        for name, value in chosen.items()
        if name in ("initial", "maximum", "multiplier", "jitter") and value is not None
    }
    constant = chosen["constant"]
    if constant is not None:
        if exponential:
            raise BadInput(f"`--constant` does not go with `--{next(iter(exponential))}`", "leave one of them out")
        return Constant(constant)
    if not exponential:
        return backoff
    start = backoff if isinstance(backoff, Exponential) else Exponential()
    return start.replace(**exponential)
