"""`forbear simulate verdict`: whether a fleet is stable, vulnerable or metastable, with the evidence."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forbear_simulate.cli.options import (
    compare_option,
    file_argument,
    json_option,
    read_scenarios,
    scenario_options,
    translate_errors,
)

if TYPE_CHECKING:
    from forbear_simulate.analysis.verdict import FleetVerdict

MEANINGS = {
    "stable": "the goodput comes back after every trigger that was tried",
    "vulnerable": "a trigger may keep the goodput down for long, but not for good",
    "metastable": "after a trigger, or by itself, the goodput stays down, although the service is well",
}


@click.command()
@file_argument
@scenario_options
@compare_option
@json_option
def verdict(
    file: Path | None, changes: tuple[str, ...], policy: str | None, compare: tuple[str, ...], as_json: bool
) -> None:
    """Say whether the fleet is stable, vulnerable or metastable.

    Triggers of many kinds and lengths are tried.
    """
    with translate_errors():
        scenarios = read_scenarios(file, changes, policy, compare)
        from forbear_simulate.analysis.verdict import verdict as judge

        verdicts = {name: judge(scenario) for name, scenario in scenarios.items()}
    if as_json:
        click.echo(json.dumps({"policies": {name: verdict_document(one) for name, one in verdicts.items()}}))
    else:
        show_verdicts(verdicts)


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
