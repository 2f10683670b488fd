"""`forbear simulate run`: simulate a fleet, and print a table of figures and a chart of goodput and load."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forbear.cli.kit.output import BadInput, check_links, tell
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
    from forbear_simulate import FleetOutcome

_LOAD, _GOODPUT, _TRIGGER = "#d62728", "#2ca02c", "#bbbbbb"


@click.command()
@file_argument
@scenario_options
@compare_option
@engine_options
@json_option
@click.option("--csv", "table", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the bins.")
@plot_option
def run(
    file: Path | None,
    changes: tuple[str, ...],
    policy: str | None,
    compare: tuple[str, ...],
    engine: str | None,
    runs: int,
    seed: int,
    workers: int | None,
    as_json: bool,
    table: Path | None,
    plot: Path | None,
) -> None:
    """Simulate a fleet, and print a table of figures and a chart.

    The chart has the goodput, and the attempts above it. The waits and stops are those of the library's policies, and
    the budgets count by its rules.
    """
    from forbear_simulate import SimulationInterrupted, simulate

    if table is not None:
        if compare:
            raise BadInput("`--csv` does not go with `--compare`", "write one file for each policy")
        check_links("csv", table, () if file is None else (file,))
    check_plot_file(plot, file)
    outcomes: dict[str, FleetOutcome] = {}
    interrupted = False
    with translate_errors(runs="`--runs`"):
        scenarios = read_scenarios(file, changes, policy, compare)
        kind = engine_of(engine, runs)
        try:
            with progress(len(scenarios) * runs, slow=kind == "exact") as advance:
                for name, scenario in scenarios.items():
                    outcomes[name] = simulate(
                        scenario, engine=kind, runs=runs, seed=seed, workers=workers, progress=advance
                    )
        except SimulationInterrupted as error:
            interrupted = True
            outcomes[list(scenarios)[len(outcomes)]] = error.outcome
    _print(outcomes, as_json=as_json)
    if table is not None:
        _write(table, next(iter(outcomes.values())).csv())
    if plot is not None:
        _plot(outcomes, plot)
        tell(f"wrote the plot to {plot}")
    if interrupted:
        tell("interrupted: this is what was known until then")
        click.get_current_context().exit(130)


def _print(outcomes: "dict[str, FleetOutcome]", *, as_json: bool) -> None:
    if as_json:
        documents = {name: outcome.document() for name, outcome in outcomes.items()}
        click.echo(json.dumps({"policies": documents} if len(documents) > 1 else next(iter(documents.values()))))
        return
    from forbear_simulate.cli.show import show_limits, show_outcomes

    show_outcomes(outcomes)
    show_limits(next(iter(outcomes.values())))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}", "choose another folder or name") from None
    tell(f"wrote the bins to {file}")


def _plot(outcomes: "Mapping[str, FleetOutcome]", file: Path) -> None:
    """Plot one panel for each outcome, with the same axes: offered load against goodput, with the trigger shaded.

    Raises BadInput if the file cannot be written.
    """
    from matplotlib.figure import Figure

    from forbear.cli.kit.output import save_plot
    from forbear_simulate.analysis.recovery import trigger
    from forbear_simulate.cli.show import scenario_text

    figure = Figure(figsize=(9, 1.2 + 3 * len(outcomes)), layout="constrained")
    scenario = next(iter(outcomes.values())).scenario
    figure.suptitle(scenario_text(scenario), fontsize="medium")  # pyright: ignore[reportUnknownMemberType]
    panels = figure.subplots(len(outcomes), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    span = trigger(scenario)
    for axes, (name, outcome) in zip(panels, outcomes.items(), strict=True):
        if span is not None:
            axes.axvspan(*span, color=_TRIGGER, alpha=0.4, label="trigger", linewidth=0)
        axes.plot(outcome.times, outcome.offered_load, color=_LOAD, label="offered load", linewidth=1)
        axes.plot(outcome.times, outcome.goodput, color=_GOODPUT, label="goodput", linewidth=1)
        axes.set_title(name, loc="left", fontsize="small")
        axes.set_ylabel("per second")
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    panels[0].legend(loc="upper right")
    panels[-1].set_xlabel("time (s)")
    save_plot(figure, file)
