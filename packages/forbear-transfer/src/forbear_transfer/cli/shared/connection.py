"""The options of commands that look at objects or change them, and copy no files: ls, cat, rm and others."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, cast

import click

from forbear_transfer.cli.shared.options import TransferOptions, check, transfer_options

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

_WORDS = {"as_json": "Print JSON.", "quiet": "Print only errors on stderr."}


def connection_options(*more: str, without: Collection[str] = (), reads: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the options of `cp` for connections, limits and output to a command.

    `more` names further options of `cp` by their parameters, such as "parallel", and `without` those that the command
    lacks. `reads` adds the option for the keys of objects. The command gets them as keywords, for `completed`.
    """

    def decorate(function: F) -> F:
        names = {*_KEPT, *more, *(("decryption_keys",) if reads else ())} - {*without}
        kept = [option for option in _options() if option.name in names]
        for option in kept:
            if isinstance(option, click.Option) and option.name in _WORDS and not more:
                option.help = _WORDS[option.name]
        untyped: Any = function
        untyped.__click_params__ = [*getattr(function, "__click_params__", []), *kept]
        return function

    return decorate


def completed(options: Mapping[str, Any]) -> TransferOptions:
    """Return the options of a command as those of `cp`, with defaults for the others; BadInput if they conflict."""
    defaults = click.Command("defaults", params=_options()).make_context("defaults", []).params
    complete = cast("TransferOptions", defaults | dict(options))
    check(complete)
    return complete


def _options() -> list[click.Parameter]:
    @transfer_options
    def template() -> None:
        """Hold the options."""

    options: list[click.Parameter] = cast("Any", template).__click_params__
    return options
