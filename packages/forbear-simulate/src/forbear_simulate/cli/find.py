"""`forbear simulate find`: the values of one key with which a limit on a figure holds."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forbear.cli.kit.output import columns, show_table
from forbear_simulate.cli.options import (
    engine_of,
    engine_option,
    file_argument,
    json_option,
    read_scenario,
    scenario_options,
    seed_option,
    translate_errors,
)

if TYPE_CHECKING:
    from forbear_simulate.analysis.search import FoundValues


@click.command()
@click.argument("key")
@file_argument
@click.option("--such-that", required=True, metavar="LIMIT", help="A limit on a figure, such as 'recovery < 60 s'.")
@scenario_options
@engine_option
@seed_option
@json_option
def find(
    key: str,
    file: Path | None,
    such_that: str,
    changes: tuple[str, ...],
    policy: str | None,
    engine: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find the values of KEY with which a limit holds.

    KEY is a number of the scenario, or `attempts` or `jitter` of the policy. The exit code is 1 if there are none.
    """
    with translate_errors(key="`KEY`", such_that="`--such-that`"):
        scenario = read_scenario(file, changes, policy)
        from forbear_simulate.analysis.search import find as search

        values = search(scenario, key, such_that=such_that, engine=engine_of(engine), seed=seed)
    if as_json:
        click.echo(json.dumps(values_document(values)))
    else:
        show_values(values)
    if values.value is None:
        click.get_current_context().exit(1)


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
