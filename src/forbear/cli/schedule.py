"""`forbear schedule`: its options, and the forecast as a table, JSON or CSV."""

import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from forbear.cli import profiles, wording
from forbear.cli.forecast import Forecast, forecast
from forbear.cli.options import Chosen, laid_over, policy_options
from forbear.cli.output import EXIT_CODES, BadInput, columns, console, show_table, tell
from forbear.core.decide import Limits
from forbear.core.record import Record

if TYPE_CHECKING:
    from forbear.core.backoff import Backoff


@click.command(epilog=EXIT_CODES)
@click.argument("profile", default=profiles.DEFAULT, metavar="[PROFILE]")
@policy_options
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw it, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def command(profile: str, plot: Path | None, as_json: bool, as_csv: bool, **chosen: Unpack[Chosen]) -> None:
    """Show when the retries of a policy would come.

    PROFILE is `default` (what forbear.retry has), a service such as `cloud_storage` (as we recommend), or one such as
    `cloud_storage.documented` (as its own page says); a wrong one gets a list. The options change it.

    For each retry: the range of the wait before it and of all waits so far. Attempts are taken to fail at once; the
    time that they take counts for the timeout, too.

    Durations are in seconds (90, 0.5) or have units (1m30s, 500ms).
    """
    if as_json and as_csv:
        raise BadInput("`--json` does not go with `--csv`", "leave one of them out")
    policy = profiles.policy(profile)
    limits, backoff = laid_over(policy.limits, policy.backoff, chosen)
    found = forecast(limits, backoff)
    if as_json:
        _print_json(profile, limits, backoff, found)
    elif as_csv:
        _print_csv(found)
    else:
        _print_table(profile, limits, backoff, found)
    if plot is not None:
        from forbear.cli.plot import draw  # needs matplotlib

        draw(found, f"{profile}: {wording.of_backoff(backoff)}", limits.timeout, plot)
        tell(f"drawn to {plot}")


def _print_table(profile: str, limits: Limits, backoff: "Backoff", found: Forecast) -> None:
    console().print(f"[bold]{profile}[/]: {wording.of_backoff(backoff)}; {wording.of_limits(limits)}\n")
    if found.retries:
        table = columns("retry", "wait before it", "all waits so far")
        table.columns[0].justify = "right"
        for retry in found.retries:
            row = (str(retry.number), wording.of_range(retry.wait), wording.of_range(retry.total))
            table.add_row(*row, style=None if retry.certain else "dim")
        show_table(table)
    click.echo(wording.of_end(found))


def _print_json(profile: str, limits: Limits, backoff: "Backoff", found: Forecast) -> None:
    fields = {name: getattr(backoff, name) for name in backoff._fields()} if isinstance(backoff, Record) else {}
    document = {
        "profile": profile,
        "backoff": {"kind": type(backoff).__name__, **fields},
        "limits": {"attempts": limits.attempts, "timeout": limits.timeout},
        "retries": [asdict(retry) for retry in found.retries],
        "end": {name: asdict(getattr(found, name)) for name in ("earliest", "medium", "latest")},
    }
    click.echo(json.dumps(document, indent=2))


def _print_csv(found: Forecast) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("retry", "wait_low", "wait_high", "total_low", "total_high", "certain"))
    for retry in found.retries:
        writer.writerow((retry.number, *retry.wait, *retry.total, str(retry.certain).lower()))
