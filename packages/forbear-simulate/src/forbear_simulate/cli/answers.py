"""Print the answers of `--verdict` and of `--find`: the state of a fleet with its evidence, the values of a key."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import columns, show_table

if TYPE_CHECKING:
    from forbear_simulate.search import FoundValues
    from forbear_simulate.verdict import FleetVerdict

MEANINGS = {
    "stable": "the goodput comes back after every trigger that was tried",
    "vulnerable": "a trigger may keep the goodput down for long, but not for good",
    "metastable": "after a trigger, or by itself, the goodput stays down, although the service is well",
}


def show_verdicts(verdicts: "Mapping[str, FleetVerdict]") -> None:
    """Print each verdict with its meaning, and its evidence as a list."""
    for name, one in verdicts.items():
        prefix = f"{name}: " if len(verdicts) > 1 else ""
        click.echo(f"{prefix}{one.state}: {MEANINGS[one.state]}")
        for sentence in one.evidence:
            click.echo(f"- {sentence}")
        click.echo()


def verdict_document(one: "FleetVerdict") -> dict[str, Any]:
    """Return a verdict as a document for JSON."""
    return {
        "state": one.state,
        "evidence": list(one.evidence),
        "load": one.load,
        "capacity": one.capacity,
        "triggers": [
            {
                "kind": trial.window.kind,
                "length": trial.window.length,
                "factor": trial.window.factor,
                "recovery": "never" if trial.recovery == float("inf") else trial.recovery,
            }
            for trial in one.trials
        ],
    }


def show_values(values: "FoundValues") -> None:
    """Print the values that keep the limit, and a table of all values that were tried."""
    click.echo(f"{values}\n")
    table = columns(values.key, values.goal.measure, "")
    for trial in values.trials:
        value = trial.value if isinstance(trial.value, str) else f"{trial.value:.4g}"
        figure = "-" if trial.figure is None else values.goal.show(trial.figure)
        table.add_row(value, figure, "fits" if trial.fits else "")
    show_table(table)


def values_document(values: "FoundValues") -> dict[str, Any]:
    """Return the result of a search as a document for JSON."""
    return {
        "key": values.key,
        "such_that": str(values.goal),
        "value": values.value,
        "fits": [*map(list, values.fits)] or list(values.words),
        "monotone": values.monotone,
        "tried": [
            {
                "value": trial.value,
                "figure": "never" if trial.figure == float("inf") else trial.figure,
                "fits": trial.fits,
            }
            for trial in values.trials
        ],
    }
