"""The options of commands that look at objects or change them, and copy no files: ls, cat, rm and others."""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, TypeVar, cast

import click

from forbear.cli.kit.options import add_options, place_under
from forbear_transfer.cli.shared.options import OPTIONS, TransferOptions, check

F = TypeVar("F", bound=Callable[..., Any])

_KEPT = (
    "as_json",
    "quiet",
    "credentials",
    "impersonate",
    "anonymous",
    "endpoint",
    "headers",
    "user_project",
    "retry",
    "stall_timeout",
    "shared_budget",
)
"""The options of `cp` that these commands have, too."""

_AS_JSON, _QUIET = place_under(
    "Output",
    click.option("--json", "as_json", is_flag=True, help="Print JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Print only errors on stderr."),
)
_SHORT = {"as_json": _AS_JSON, "quiet": _QUIET}
"""The options that replace those of `cp` in commands without an outcome for each file."""


def connection_options(*more: str, without: Collection[str] = (), reads: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the options of `cp` for connections, limits and output to a command.

    `more` names further options of `cp` by their parameters, such as "parallel", and `without` those that the command
    lacks. `reads` adds the option for the keys of objects. The command gets them as keywords, for `completed`.
    """
    names = {*_KEPT, *more, *(("decryption_keys",) if reads else ())} - {*without}
    options = _map_options() if "parallel" in more else _map_options() | _SHORT
    chosen = [option for name, option in options.items() if name in names]
    return lambda function: add_options(function, chosen)


def completed(options: Mapping[str, Any]) -> TransferOptions:
    """Return the options of a command as those of `cp`, with defaults for the others; BadInput if they conflict."""
    defaults = _make_command(*OPTIONS).make_context("defaults", []).params
    complete = cast("TransferOptions", defaults | dict(options))
    check(complete)
    return complete


@cache
def _map_options() -> dict[str, Callable[[Any], Any]]:
    """Return the options of `cp` by the names of their parameters."""
    return {str(_make_command(option).params[0].name): option for option in OPTIONS}


def _make_command(*options: Callable[[Any], Any]) -> click.Command:
    """Return a command that has these options, and does nothing."""

    def do_nothing(**_: object) -> None:
        pass

    return click.command()(add_options(do_nothing, options))
