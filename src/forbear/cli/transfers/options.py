"""The options that both commands share, and what they mean together. Nothing that transfers is loaded here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from forbear.cli import values
from forbear.cli.options import Chosen, policy_options
from forbear.cli.output import BadInput

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)

_OPTIONS = (
    click.option("-x", "--exclude", metavar="REGEX", help="Leave out what it matches, by the name within SOURCE."),
    click.option("--manifest", type=_FILE, metavar="FILE", help="Note there what was done; a rerun leaves that out."),
    click.option("--parallel", type=click.IntRange(1), metavar="N", help="At most so many transfers at a time."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file, a summary last."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but what failed."),
)
_CONNECTION = (
    click.option("--credentials", type=_FILE, metavar="FILE", help="Key file; else the application default ones."),
    click.option("--impersonate", metavar="EMAIL", help="Act as this service account."),
    click.option("--anonymous", is_flag=True, help="Send no credentials."),
    click.option("--endpoint", metavar="URL", help="The service; else $STORAGE_EMULATOR_HOST, or the real one."),
    click.option("--user-project", metavar="PROJECT", help="Who pays, for buckets whose requester does."),
    click.option(
        "--stall-timeout", type=values.duration, metavar="S", help="For so long no byte may move; 60 by default."
    ),
    click.option("--embedded", is_flag=True, help="Try it on an embedded cloud, which ends with the command."),
    click.option("--storm", type=int, metavar="SEED", help="With --embedded: fail some requests."),
)


class Given(Chosen):
    """The shared options, as click hands them over; None and False where nothing was said."""

    exclude: str | None
    manifest: Path | None
    parallel: int | None
    as_json: bool
    quiet: bool
    credentials: Path | None
    impersonate: str | None
    anonymous: bool
    endpoint: str | None
    user_project: str | None
    stall_timeout: float | None
    embedded: bool
    storm: int | None


def transfer_options(function: F) -> F:
    """Add the shared options to a command; it receives them as the keywords of `Given`."""
    function = policy_options(function)
    for option in reversed((*_OPTIONS, *_CONNECTION)):
        function = option(function)
    return function


def check(given: Given) -> None:
    """BadInput for options that do not go together."""
    said: dict[str, object] = dict(given)
    for first, second in (
        ("anonymous", "credentials"),
        ("anonymous", "impersonate"),
        ("embedded", "endpoint"),
        ("embedded", "credentials"),
        ("embedded", "impersonate"),
        ("embedded", "user_project"),
    ):
        if said[first] and said[second]:
            raise BadInput(f"`{_spelt(first)}` does not go with `{_spelt(second)}`", "leave one of them out")
    if given["storm"] is not None and not given["embedded"]:
        raise BadInput("`--storm` is for the embedded cloud only", "add --embedded, or start `forbear cloud --storm`")


def _spelt(name: str) -> str:
    return f"--{name.replace('_', '-')}"
