"""The options of commands that look at objects or change them, and copy no files: ls, cat, rm and others."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, cast

import click

from forbear.cli.kit.options import HeadedOption
from forbear_transfer.cli.shared.options import OPTIONS, TransferOptions, check

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

_output_option = partial(HeadedOption, heading="Output")
_SHORT = (
    _output_option(["--json", "as_json"], is_flag=True, help="Print JSON."),
    _output_option(["-q", "--quiet"], is_flag=True, help="Print only errors on stderr."),
)
"""The options that replace those of `cp` in commands without an outcome for each file."""


def connection_options(*more: str, without: Collection[str] = (), reads: bool = False) -> list[click.Parameter]:
    """Return the options of `cp` for connections, limits and output, the `params` of a command.

    `more` names further options of `cp` by their parameters, such as "parallel", and `without` those that the command
    lacks. `reads` adds the option for the keys of objects. The command gets them as keywords, for `completed`.
    """
    names = {*_KEPT, *more, *(("decryption_keys",) if reads else ())} - {*without}
    short = {} if "parallel" in more else {option.name: option for option in _SHORT}
    return [short.get(option.name, option) for option in OPTIONS if option.name in names]


def completed(options: Mapping[str, Any]) -> TransferOptions:
    """Return the options of a command as those of `cp`, with defaults for the others; BadInput if they conflict."""
    defaults = click.Command("defaults", params=[*OPTIONS]).make_context("defaults", []).params
    complete = cast("TransferOptions", defaults | dict(options))
    check(complete)
    return complete
