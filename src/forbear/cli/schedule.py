"""`forbear schedule`: the forecast of a policy as a table, JSON, CSV or a plot."""

import csv
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from forbear.cli.forecast import Forecast, backoff_text, end_text, forecast, limits_text, range_text
from forbear.cli.options import PolicyOptions, apply_options, policy_options
from forbear.cli.output import EXIT_CODES, BadInput, columns, console, show_table, tell
from forbear.cli.profiles import DEFAULT_PROFILE, named_policy
from forbear.core.decide import Limits
from forbear.core.presets import PRESETS
from forbear.core.record import Record

if TYPE_CHECKING:
    from forbear.protocols import Backoff


@click.command(epilog=EXIT_CODES)
@click.argument("profile", default=DEFAULT_PROFILE, metavar="[PROFILE]")
@policy_options
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also draw a plot.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def command(profile: str, plot: Path | None, as_json: bool, as_csv: bool, **options: Unpack[PolicyOptions]) -> None:
    """Show when a policy retries.

    PROFILE is `default` (the policy of forbear.retry), a service such as `cloud_storage` (the recommended policy), or
    a name such as `cloud_storage.documented` (the service's own documentation). It may also be a preset:
    `interactive`, `mobile`, `ci` or `batch`. A wrong name prints the list. The options change the policy.

    Each row shows a retry, the range of the wait before it, and the range of all waits so far. The schedule assumes
    that attempts fail at once; in a real run their time counts for the timeout, too.

    Durations are in seconds (90, 0.5) or have units (1m30s, 500ms).
    """
    if as_json and as_csv:
        raise BadInput("`--json` does not go with `--csv`", "leave one of them out")
    policy = named_policy(profile)
    limits, backoff = apply_options(policy.limits, policy.backoff, options)
    predicted = forecast(limits, backoff)
    if as_json:
        _print_json(profile, limits, backoff, predicted)
    elif as_csv:
        _print_csv(predicted)
    else:
        _print_table(profile, limits, backoff, predicted)
    if plot is not None:
        _draw(predicted, f"{profile}: {backoff_text(backoff)}", limits.timeout, plot)
        tell(f"wrote the plot to {plot}")


def _print_table(profile: str, limits: Limits, backoff: "Backoff", predicted: Forecast) -> None:
    console().print(f"[bold]{profile}[/]: {backoff_text(backoff)}; {limits_text(limits)}\n")
    if predicted.retries:
        table = columns("retry", "wait before it", "all waits so far")
        table.columns[0].justify = "right"
        for retry in predicted.retries:
            row = (str(retry.number), range_text(retry.wait), range_text(retry.total))
            table.add_row(*row, style=None if retry.certain else "dim")
        show_table(table)
    click.echo(end_text(predicted))
    if profile in PRESETS:
        console().print(f"\n{PRESETS[profile].reason}", markup=False)


def _print_json(profile: str, limits: Limits, backoff: "Backoff", predicted: Forecast) -> None:
    fields = {name: getattr(backoff, name) for name in backoff._fields()} if isinstance(backoff, Record) else {}
    document: dict[str, object] = {
        "profile": profile,
        "backoff": {"kind": type(backoff).__name__, **fields},
        "limits": {"attempts": limits.attempts, "timeout": limits.timeout},
        "retries": [asdict(retry) for retry in predicted.retries],
        "end": {name: asdict(getattr(predicted, name)) for name in ("earliest", "medium", "latest")},
    }
    if profile in PRESETS:
        document["reason"] = PRESETS[profile].reason
    click.echo(json.dumps(document, indent=2))


def _print_csv(predicted: Forecast) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("retry", "wait_low", "wait_high", "total_low", "total_high", "certain"))
    for retry in predicted.retries:
        writer.writerow((retry.number, *retry.wait, *retry.total, str(retry.certain).lower()))


_BAND, _LINE = "#9ecae1", "#3182bd"


def _draw(predicted: Forecast, title: str, timeout: float | None, file: Path) -> None:
    """Plot the ranges of each wait and of all waits so far to `file`, in the format of its suffix.

    Raises BadInput for an unknown suffix, and if the file cannot be written.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    numbers = [retry.number for retry in predicted.retries]
    figure = Figure(figsize=(8, 6), layout="constrained")
    figure.suptitle(title, fontsize="medium")  # pyright: ignore[reportUnknownMemberType]
    waits, totals = figure.subplots(2, 1, sharex=True)
    for axes, ranges, label in (
        (waits, [retry.wait for retry in predicted.retries], "wait before it (s)"),
        (totals, [retry.total for retry in predicted.retries], "all waits so far (s)"),
    ):
        low, high = [pair[0] for pair in ranges], [pair[1] for pair in ranges]
        axes.fill_between(numbers, low, high, color=_BAND)
        axes.plot(numbers, low, ".-", numbers, high, ".-", color=_LINE)
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    totals.set_xlabel("retry")
    totals.xaxis.set_major_locator(MaxNLocator(integer=True))
    if timeout is not None:
        totals.axhline(timeout, color="gray", linestyle="--", label="timeout")
        totals.legend()
    for axes in (waits, totals):
        axes.set_ylim(bottom=0)
    try:
        figure.savefig(file)  # pyright: ignore[reportUnknownMemberType]
    except ValueError as error:
        raise BadInput(f"cannot plot to {file}: {error}", "name a file that ends in .png or .svg") from None
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}", "choose another folder or name") from None
