"""Print the answers of `--verdict`: whether a fleet is stable, vulnerable or metastable, and why."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from forbear.simulate.verdict import FleetVerdict

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
