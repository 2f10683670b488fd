"""`forbear schedule`: the forecast of a policy as a table, JSON, CSV or a plot."""

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from forbear.cli.kit.completion import complete_profile
from forbear.cli.kit.forecast import Forecast, backoff_text, end_text, forecast, limits_text, range_text
from forbear.cli.kit.options import POLICY_OPTIONS, GroupedCommand, PolicyOptions, apply_options
from forbear.cli.kit.output import (
    EXIT_CODES,
    BadInput,
    check_plot,
    columns,
    line_width,
    save_plot,
    show_table,
    style,
    tell,
    wrap,
)
from forbear.cli.kit.profiles import DEFAULT_PROFILE, find_named_policy
from forbear.core.limits import Limits
from forbear.core.presets import PRESETS
from forbear.core.record import Record, field_names

if TYPE_CHECKING:
    from forbear.core.protocols import Backoff


@click.command(cls=GroupedCommand, params=[*POLICY_OPTIONS], epilog=EXIT_CODES)
@click.argument("profile", default=DEFAULT_PROFILE, metavar="[PROFILE]", shell_complete=complete_profile)
@click.option("--chart", is_flag=True, help="Also show the waits as bars.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write a plot.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def command(
    profile: str, chart: bool, plot: Path | None, as_json: bool, as_csv: bool, **options: Unpack[PolicyOptions]
) -> None:
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
    if chart and (as_json or as_csv):
        raise BadInput(f"`--chart` does not go with `--{'json' if as_json else 'csv'}`", "leave one of them out")
    policy = find_named_policy(profile)
    limits, backoff = apply_options(policy.limits, policy.backoff, options)
    predicted = forecast(limits, backoff)
    if plot is not None:  # before any output, in case it fails
        check_plot(plot)
        _draw(predicted, f"{profile}: {backoff_text(backoff)}", limits.timeout, plot)
    if as_json:
        _print_json(profile, limits, backoff, predicted)
    elif as_csv:
        _print_csv(predicted)
    else:
        _print_table(profile, limits, backoff, predicted, chart=chart)
    if plot is not None:
        tell(f"wrote the plot to {plot}")


_BARS = {True: ("█", "░"), False: ("#", ".")}
"""The signs of the shortest wait and of its random part, by whether stdout can show Unicode."""
_LONGEST_BAR, _SHORTEST_BAR = 40, 8


def _print_table(profile: str, limits: Limits, backoff: "Backoff", predicted: Forecast, *, chart: bool) -> None:
    text = wrap(f"{profile}: {backoff_text(backoff)}; {limits_text(limits)}")
    click.echo(f"{style(profile, bold=True)}{text[len(profile) :]}\n")
    if predicted.retries:
        headers: tuple[str, ...] = ("retry", "wait before it", "all waits so far")
        rows: list[tuple[str, ...]] = [
            (str(each.number), range_text(each.wait), range_text(each.total)) for each in predicted.retries
        ]
        signs = _BARS[(getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")]
        if chart:
            widths = (max(map(len, column)) + 3 for column in zip(headers, *rows, strict=True))
            room = min((line_width() or 80) - sum(widths), _LONGEST_BAR)
            bars = _bars([each.wait for each in predicted.retries], max(room, _SHORTEST_BAR), signs)
            rows = [(*row, bar) for row, bar in zip(rows, bars, strict=True)]
            headers = (*headers, "")
        table = columns(*headers)
        table.columns[0].justify = "right"
        for row, retry in zip(rows, predicted.retries, strict=True):
            table.add_row(*row, style=None if retry.certain else "dim")
        show_table(table)
        if chart:
            click.echo(wrap(f"{signs[0]} the shortest wait, {signs[1]} its random part") + "\n")
    click.echo(wrap(end_text(predicted)))
    if profile in PRESETS:
        click.echo("\n" + wrap(PRESETS[profile].reason))


def _bars(waits: Sequence[tuple[float, float]], room: int, signs: tuple[str, str]) -> list[str]:
    """Return a bar for each range of waits, with one scale; the longest has `room` characters."""
    scale = room / (max(high for _, high in waits) or 1.0)
    certain, random = signs
    ends = [(round(low * scale), max(round(high * scale), high > 0)) for low, high in waits]
    return [certain * low + random * (high - low) for low, high in ends]


def _print_json(profile: str, limits: Limits, backoff: "Backoff", predicted: Forecast) -> None:
    fields = {name: getattr(backoff, name) for name in field_names(backoff)} if isinstance(backoff, Record) else {}
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
    """Plot the ranges of each wait and of all waits so far to `file`; raise BadInput if it cannot be written."""
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
    save_plot(figure, file)
