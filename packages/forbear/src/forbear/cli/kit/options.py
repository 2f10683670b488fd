"""The options of policies: limits and backoff one by one, all in `--retry`, and the budget of `--shared-budget`.

The URL of a budget's server is in the environment, never in `ps`.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

import click
from click.shell_completion import CompletionItem

from forbear.cli.kit import values
from forbear.cli.kit.completion import complete_profile
from forbear.cli.kit.output import BadInput, name_options
from forbear.core.backoff import JITTERS, Constant, Exponential
from forbear.core.limits import Limits

if TYPE_CHECKING:
    from forbear.core.events import Event
    from forbear.core.protocols import Backoff
    from forbear.shared_budget.budget import SharedBudget


FUNCTION_LIMITS = Limits(timeout=None)
"""The limits of commands without a default policy: five attempts, and no timeout."""

_EXPONENTIAL = ("initial", "maximum", "multiplier", "jitter")


_NO_HEADING = "Options"


class HeadedOption(click.Option):
    """An option that the help of a GroupedCommand lists below a heading."""

    def __init__(self, *args: Any, heading: str = _NO_HEADING, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command whose help lists each HeadedOption below its heading, and the others below "Options"."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options into the help, group by group; the first group is "Options"."""
        groups: dict[str, list[tuple[str, str]]] = {_NO_HEADING: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                heading = param.heading if isinstance(param, HeadedOption) else _NO_HEADING
                groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class PolicyOptions(TypedDict):
    """The values of `POLICY_OPTIONS`; None for an option that was not used."""

    attempts: int | values.NoLimit | None
    timeout: float | values.NoLimit | None
    initial: float | None
    maximum: float | None
    multiplier: float | None
    jitter: str | None
    constant: float | None


class _PolicyOption(HeadedOption):
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


LIMITS_AND_BACKOFF = "Limits and backoff"
"""The heading of the options that change a policy."""

_option = partial(_PolicyOption, heading=LIMITS_AND_BACKOFF)

POLICY_OPTIONS = (
    _option(["--attempts"], type=values.count_or_none, metavar="N", help="Attempts, including the first; or none."),
    _option(
        ["--timeout"],
        type=values.duration_or_none,
        metavar="S",
        help="Start no wait that would end later than this after the start; or none.",
    ),
    _option(["--initial"], type=values.duration, metavar="S", help="First step of the backoff."),
    _option(["--maximum"], type=values.duration, metavar="S", help="Longest step of the backoff."),
    _option(["--multiplier"], type=float, metavar="X", help="Growth from one step to the next."),
    _option(["--jitter"], type=click.Choice(JITTERS), help="Random part of the waits."),
    _option(["--constant"], type=values.duration_from_zero, metavar="S", help="Always wait this long, without jitter."),
)
"""The options for limits and backoff; a command gets them as the keywords of `PolicyOptions`."""


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


VARIABLE = "FORBEAR_BUDGET_URL"


def make_shared_budget_option(heading: str) -> HeadedOption:
    """Return the option whose value is the name for `open_shared_budget`."""
    return HeadedOption(
        ["--shared-budget"],
        metavar="NAME",
        help="Share a retry budget by this name with other processes, on the Redis server in $FORBEAR_BUDGET_URL.",
        heading=heading,
    )


def open_shared_budget(name: str | None, on_event: "Callable[[Event], object] | None") -> "SharedBudget | None":
    """Return the shared budget called `name`, None without one; BadInput for a wrong name or URL."""
    if name is None:
        return None
    url = os.environ.get(VARIABLE, "")
    if not url:
        raise BadInput(
            f"`--shared-budget` needs the URL of a Redis or Valkey server in {VARIABLE}, which is not set",
            f"set it in the environment: export {VARIABLE}=redis://localhost:6379/0",
        )
    from forbear.shared_budget.budget import SharedBudget

    try:
        return SharedBudget(url, name, on_event=on_event)
    except ImportError as error:
        raise BadInput(str(error)) from None
    except ValueError as error:
        text = str(error).replace("`url_or_client`", VARIABLE).replace("`name`", "`--shared-budget`")
        raise BadInput(text) from None


if TYPE_CHECKING:
    _ChangesType = click.ParamType[dict[str, Any]]
else:
    _ChangesType = click.ParamType  # no generic class before click 8.4

_KEYS: Mapping[str, click.Option] = {str(option.name): option for option in POLICY_OPTIONS}


class _Changes(_ChangesType):
    """A profile's name, changes such as attempts=5, or both, with commas between them."""

    name = "retry"

    def __init__(self, profile: str) -> None:
        self._profile = profile

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        changes: dict[str, Any] = {"profile": self._profile, **dict.fromkeys(_KEYS)}
        for number, part in enumerate(str(value).split(",")):
            key, equals, text = (word.strip() for word in part.partition("="))
            if not equals and number == 0:
                changes["profile"] = key
            elif key not in _KEYS or not equals:
                known = ", ".join(_KEYS)
                self.fail(f"{part!r} is no change of a policy; write a key and a value, such as attempts=5 ({known})")
            elif changes[key] is not None:
                self.fail(f"{key} is there twice; leave one of them out")
            else:
                changes[key] = self._read(key, text)
        return changes

    def _read(self, key: str, text: str) -> Any:
        try:
            return _KEYS[key].type.convert(text, None, None)
        except click.BadParameter as error:
            self.fail(f"{key}: {error.message}")


class RetryOption(HeadedOption):
    """The option `--retry`: a command gets its keys as parameters, which errors name as `spelled`."""

    spelled: Mapping[str, str] = {"profile": "--retry NAME"} | {key: f"--retry {key}=VALUE" for key in _KEYS}

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Set a parameter of the command for each key."""
        changes, args = super().handle_parse_result(ctx, opts, args)
        ctx.params.update(changes)
        return changes, args


def make_retry_option(profile: str, heading: str) -> RetryOption:
    """Return the option `--retry` for a command whose default policy is called `profile`."""
    return RetryOption(
        ["--retry"],
        heading=heading,
        type=_Changes(profile),
        default=profile,
        show_default=True,
        expose_value=False,
        metavar="POLICY",
        help="A policy of `forbear schedule`, changes of it such as attempts=5,timeout=60, or both.",
        shell_complete=_complete,
    )


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the profiles and the keys; after a comma, the keys alone."""
    before, comma, last = incomplete.rpartition(",")
    keys = [CompletionItem(f"{before}{comma}{key}=") for key in _KEYS if key.startswith(last)]
    return keys if comma else [*complete_profile(ctx, param, incomplete), *(keys if incomplete else [])]
