"""The option `--shared-budget` of `run`, `cp` and `rsync`; the server's URL is in the environment, never in `ps`."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from forbear.cli.kit.output import BadInput

if TYPE_CHECKING:
    from forbear.core.events import Event
    from forbear.shared_budget.budget import SharedBudget

VARIABLE = "FORBEAR_BUDGET_URL"
"""The environment variable with the URL of the Redis or Valkey server."""

shared_budget_option = click.option(
    "--shared-budget",
    metavar="NAME",
    help="Share a retry budget by this name with other processes, on the Redis server in $FORBEAR_BUDGET_URL.",
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
