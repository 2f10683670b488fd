"""`forbear audit --storm-plan`: the findings that `pytest --forbear-storm` can prove, as the plan of a storm."""

import ast
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forbear.cli.kit.output import BadInput, check_links, tell
from forbear_audit.findings import Finding
from forbear_audit.reading import sources
from forbear_audit.reading.scopes import Function
from forbear_audit.storm.faults import PROVABLE
from forbear_audit.storm.places import StormPlace, StormPlan

if TYPE_CHECKING:
    from forbear_audit import Audit

_ABOUT_CALLS = ("UNSAFE", "NESTED")
_MOUNTED = frozenset({"urllib3", "httpx-retries"})
"""The libraries whose policies are mounted on a client: a finding stands where the policy is made, never at a call."""
_PASSED = frozenset({"aiohttp-retry", "google-api-core", "redis", "grpc"})
"""The libraries whose policies are passed to a client or to a call: a finding may stand at the call itself."""


def storm_plan(findings: Iterable[Finding]) -> StormPlan:
    """Return the plan of a storm for the findings that it can prove, without those in notebooks, which no test runs.

    Paths count from the current folder. A policy outside of functions, or an object, is suspected in its whole file.
    """
    folder = Path.cwd()
    trees = cache(sources.read_tree)
    places = tuple(
        _place(finding, trees(Path(finding.path)) or ast.Module([], []), folder)
        for finding in findings
        if finding.rule in PROVABLE and not finding.cell
    )
    return StormPlan(places, folder)


def _place(finding: Finding, tree: ast.Module, folder: Path) -> StormPlace:
    function = _function(tree, finding)
    decorates = function is not None and finding.line < function.lineno
    call = None
    if finding.rule in _ABOUT_CALLS and not decorates and _is_call(tree, finding):
        call = (finding.line, finding.end_line)
    around = None if function is None else (function.lineno, function.end_lineno or function.lineno)
    stands_elsewhere = finding.library in _MOUNTED or (finding.library in _PASSED and call is None)
    if stands_elsewhere and not decorates:
        call = around = None
    path = Path(os.path.relpath(finding.path, folder)).as_posix()
    return StormPlace(path, finding.line, finding.rule, finding.text, call, around, PROVABLE[finding.rule].faults)


def _function(tree: ast.Module, finding: Finding) -> Function | None:
    """Return the innermost function around a finding; its decorators belong to it."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    around = [one for one in functions if _first(one) <= finding.line <= (one.end_lineno or 0)]
    return max(around, key=_first, default=None)


def _first(function: Function) -> int:
    return min((decorator.lineno for decorator in function.decorator_list), default=function.lineno)


def _is_call(tree: ast.Module, finding: Finding) -> bool:
    column = len(finding.text[: finding.column - 1].encode("utf-8", "surrogatepass"))
    return any(
        isinstance(node, ast.Call)
        and (node.lineno, node.col_offset, node.end_lineno) == (finding.line, column, finding.end_line)
        for node in ast.walk(tree)
    )


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
