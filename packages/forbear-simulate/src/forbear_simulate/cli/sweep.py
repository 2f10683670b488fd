"""`forbear simulate sweep`: success and load against the values of one key, a curve for each scenario."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import columns, save_plot, show_table, tell
from forbear_simulate.cli.options import (
    check_plot_file,
    compare_option,
    engine_of,
    engine_options,
    file_argument,
    json_option,
    plot_option,
    progress,
    read_scenarios,
    scenario_options,
    translate_errors,
)

if TYPE_CHECKING:
    from forbear_simulate.analysis.sweep import SweptFigures


@click.command()
@click.argument("values", metavar="KEY=FROM..TO")
@file_argument
@scenario_options
@compare_option
@engine_options
@json_option
@plot_option
def sweep(
    values: str,
    file: Path | None,
    changes: tuple[str, ...],
    policy: str | None,
    compare: tuple[str, ...],
    engine: str | None,
    runs: int,
    seed: int,
    workers: int | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Show success and load against the values of one key.

    KEY=FROM..TO is a range; KEY=1,2,5 are numbers.
    """
    check_plot_file(plot, file)
    with translate_errors(sweep="`KEY=FROM..TO`", key="`KEY=FROM..TO`", runs="`--runs`"):
        scenarios = read_scenarios(file, changes, policy, compare)
        from forbear_simulate.analysis.sweep import read_values
        from forbear_simulate.analysis.sweep import sweep as simulate_values

        key, numbers = read_values(values)
        kind = engine_of(engine, runs)
        with progress(len(scenarios) * len(numbers) * runs, slow=True) as advance:
            swept = {
                name: simulate_values(
                    scenario, key, numbers, engine=kind, runs=runs, seed=seed, workers=workers, progress=advance
                )
                for name, scenario in scenarios.items()
            }
    if as_json:
        click.echo(json.dumps(sweeps_document(swept)))
    else:
        show_sweeps(swept)
    if plot is not None:
        plot_sweeps(swept, plot)
        tell(f"wrote the plot to {plot}")


def show_sweeps(swept: "Mapping[str, SweptFigures]") -> None:
    """Print two tables, of success and of load, with a row for each value and a column for each scenario."""
    first = next(iter(swept.values()))
    for title, texts in (
        ("calls that succeed", [[f"{share:.1%}" for share in one.success] for one in swept.values()]),
        ("attempts per second", [[f"{load:,.4g}" for load in one.load] for one in swept.values()]),
    ):
        click.echo(f"{title}\n")
        table = columns(first.key, *swept)
        for value, *cells in zip(first.values, *texts, strict=True):
            table.add_row(f"{value:.4g}", *cells)
        show_table(table)


def sweeps_document(swept: "Mapping[str, SweptFigures]") -> dict[str, Any]:
    """Return sweeps as a document for JSON: the lists of each scenario, one number for each value."""
    first = next(iter(swept.values()))
    return {
        "key": first.key,
        "values": list(first.values),
        "policies": {
            name: {"success": list(one.success), "load": list(one.load), "amplification": list(one.amplification)}
            for name, one in swept.items()
        },
    }


def plot_sweeps(swept: "Mapping[str, SweptFigures]", file: Path) -> None:
    """Plot success above load, with a curve for each scenario; raise BadInput as `plot_outcomes` does."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 7), layout="constrained")
    panels: Any = figure.subplots(2, 1, sharex=True)
    for name, one in swept.items():
        panels[0].plot(one.values, [share * 100 for share in one.success], marker=".", label=name)
        panels[1].plot(one.values, one.load, marker=".", label=name)
    for axes, label in zip(panels, ("calls that succeed (%)", "attempts per second"), strict=True):
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    panels[1].set_xlabel(next(iter(swept.values())).key)
    panels[0].legend()
    save_plot(figure, file)
