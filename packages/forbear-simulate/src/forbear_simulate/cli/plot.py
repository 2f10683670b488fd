"""Plot outcomes to a file with matplotlib: offered load against goodput, with the trigger shaded."""

from collections.abc import Mapping
from pathlib import Path

from forbear.cli.kit.plots import save
from forbear_simulate.cli.show import scenario_text
from forbear_simulate.outcome import FleetOutcome
from forbear_simulate.recovery import trigger

_LOAD, _GOODPUT, _TRIGGER = "#d62728", "#2ca02c", "#bbbbbb"


def plot_outcomes(outcomes: Mapping[str, FleetOutcome], file: Path) -> None:
    """Plot one panel for each outcome, with the same axes, in the format of the file's suffix.

    Raises BadInput if the file cannot be written.
    """
    from matplotlib.figure import Figure

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
    save(figure, file)
