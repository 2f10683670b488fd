"""`forbear audit --storm-plan`: write the findings that a storm can prove."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forbear.cli.kit.output import BadInput, check_links, tell

if TYPE_CHECKING:
    from forbear_audit import Audit


def check_plan(name: str, read: Iterable[Path], *, write_baseline: bool, prints: bool) -> None:
    """Raise BadInput for a link, and for options that do not go with `--storm-plan`.

    `read` is what the audit reads. `prints` are the options that print a document.
    """
    if write_baseline:
        raise BadInput("`--storm-plan` does not go with `--write-baseline`", "write one after the other")
    if name == "-" and prints:
        raise BadInput("`--storm-plan -` does not go with `--json` or `--sarif`", "write the plan to a file")
    if name != "-":
        check_links("storm-plan", Path(name), read)


def write_plan(result: "Audit", name: str) -> None:
    """Write the plan of a storm for the findings to a file, or to stdout for "-"; BadInput if it cannot be written."""
    from forbear_audit.storm_plan import storm_plan

    plan = storm_plan(result.findings)
    text = json.dumps(plan.as_dict(), indent=2)
    if name == "-":
        click.echo(text)
        return
    try:
        Path(name).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(f"`--storm-plan` cannot write {name}: {error.strerror}", "name another file") from None
    count = f"{len(plan.places)} place{'s' * (len(plan.places) != 1)}"
    tell(f"wrote {count} to {name}; now run: pytest --forbear-storm --forbear-storm-plan {name}")
