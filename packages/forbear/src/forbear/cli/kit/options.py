"""The options that change the limits and the backoff of a policy."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from forbear.cli.kit import values
from forbear.cli.kit.output import BadInput, name_options
from forbear.core.backoff import JITTERS, Constant, Exponential
from forbear.core.decide import Limits

if TYPE_CHECKING:
    from forbear.core.protocols import Backoff

FUNCTION_LIMITS = Limits(timeout=None)
"""The limits of commands without a default policy: five attempts, and no timeout."""

_EXPONENTIAL = ("initial", "maximum", "multiplier", "jitter")

F = TypeVar("F", bound=Callable[..., Any])


class GroupedCommand(click.Command):
    """A command whose help lists options below the headings of `place_under`, and the others below "Options"."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options into the help, group by group; the first group is "Options"."""
        groups: dict[str, list[tuple[str, str]]] = {_NO_HEADING: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                groups.setdefault(getattr(param, "heading", _NO_HEADING), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


_NO_HEADING = "Options"


def place_under(heading: str, *options: Callable[[F], F]) -> "tuple[Callable[[F], F], ...]":
    """Return the same options, which are decorators of click, with a heading for the help of a GroupedCommand."""

    def place(option: Callable[[F], F]) -> Callable[[F], F]:
        def add(function: F) -> F:
            function = option(function)
            made: Any = getattr(function, "__click_params__")[-1]  # noqa: B009 - no type knows it
            made.heading = heading
            return function

        return add

    return tuple(map(place, options))


class PolicyOptions(TypedDict):
    """The values of the options that `policy_options` adds; None for an option that was not used."""

    attempts: int | values.NoLimit | None
    timeout: float | values.NoLimit | None
    initial: float | None
    maximum: float | None
    multiplier: float | None
    jitter: str | None
    constant: float | None


class _PolicyOption(click.Option):
    """An option that changes a policy. Its help shows the value in the command's default policy."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help, with the default."""
        record, value = super().get_help_record(ctx), _default_text(ctx, self.name or "")
        return record if record is None or value is None else (record[0], f"{record[1]}  [default: {value}]")


def _default_text(ctx: click.Context, name: str) -> str | None:
    """Return the value of an option in the default policy of a command; None if it has none, as `--constant`."""
    from forbear.cli.kit.profiles import RECOMMENDED, find_named_policy  # needed for the help only

    profile = next((each.default for each in ctx.command.params if each.name == "profile"), None)
    if name == "constant":
        return None
    if profile == RECOMMENDED:
        return "by the service"
    if isinstance(profile, str):
        policy = find_named_policy(profile)
        limits, backoff = policy.limits, policy.backoff
    else:
        limits, backoff = FUNCTION_LIMITS, Exponential()
    value = getattr(limits if name in ("attempts", "timeout") else backoff, name, None)
    return "none" if value is None else f"{value:g}" if isinstance(value, float | int) else str(value)


def policy_options(function: F) -> F:
    """Add the options for limits and backoff to a command, which gets them as the keywords of `PolicyOptions`."""
    return add_options(
        function,
        place_under(
            "Limits and backoff",
            _option(
                "--attempts", type=values.count_or_none, metavar="N", help="Attempts, including the first; or none."
            ),
            _option(
                "--timeout",
                type=values.duration_or_none,
                metavar="S",
                help="Start no wait that would end later than this after the start; or none.",
            ),
            _option("--initial", type=values.duration, metavar="S", help="First step of the backoff."),
            _option("--maximum", type=values.duration, metavar="S", help="Longest step of the backoff."),
            _option("--multiplier", type=float, metavar="X", help="Growth from one step to the next."),
            _option("--jitter", type=click.Choice(JITTERS), help="Random part of the waits."),
            _option(
                "--constant", type=values.duration_from_zero, metavar="S", help="Always wait this long, without jitter."
            ),
        ),
    )


_option = partial(click.option, cls=_PolicyOption)


def add_options(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """Add options, which are decorators of click, to a command; its help shows them in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def apply_options(limits: "Limits", backoff: "Backoff", options: PolicyOptions) -> "tuple[Limits, Backoff]":
    """Return the limits and the backoff, changed by the options that were used; BadInput if they are contradictory.

    `--constant` replaces the backoff; other options change it, or the default Exponential if it is of another type.
    """
    chosen = {
        name: None if isinstance(value, values.NoLimit) else value
        for name, value in (("attempts", options["attempts"]), ("timeout", options["timeout"]))
        if value is not None
    }
    try:
        changed = limits.replace(unlimited=True, **chosen)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None
    if changed.attempts is None and changed.timeout is None:
        raise BadInput(
            name_options("`attempts` and `timeout` must not both be none, or a run may never end"),
            "give one of them a limit",
        )
    return changed.replace(unlimited=limits.unlimited), _backoff(backoff, options)


def _backoff(backoff: "Backoff", options: PolicyOptions) -> "Backoff":
    fields = {name: value for name, value in options.items() if name in _EXPONENTIAL and value is not None}
    constant = options["constant"]
    if constant is not None:
        if fields:
            both = name_options(f"`constant` does not go with `{next(iter(fields))}`")
            raise BadInput(both, "leave one of them out")
        return Constant(constant)
    if not fields:
        return backoff
    start = backoff if isinstance(backoff, Exponential) else Exponential()
    try:
        return start.replace(**fields)
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None
