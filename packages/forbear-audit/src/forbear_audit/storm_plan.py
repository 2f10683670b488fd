"""`storm_plan`: the findings of an audit that `pytest --forbear-storm` can prove, as the plan of a storm."""

import ast
import os
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from forbear_audit import sources
from forbear_audit.findings import Finding
from forbear_audit.modules import Function
from forbear_audit.storm.kinds import PROVABLE
from forbear_audit.storm.places import StormPlace, StormPlan

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
    trees = cache(_tree)
    places = tuple(
        _place(finding, trees(finding.path), folder)
        for finding in findings
        if finding.rule in PROVABLE and not finding.cell
    )
    return StormPlan(places, folder)


def _tree(path: str) -> ast.Module:
    texts = sources.read(Path(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the code that is read
        return ast.parse(texts[0][1] if isinstance(texts, list) else "")


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
    return max(
        (function for function in _functions(tree) if _first(function) <= finding.line <= (function.end_lineno or 0)),
        key=_first,
        default=None,
    )


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _first(function: Function) -> int:
    return min((decorator.lineno for decorator in function.decorator_list), default=function.lineno)


def _is_call(tree: ast.Module, finding: Finding) -> bool:
    """Return whether the code of a finding is a call."""
    column = len(finding.text[: finding.column - 1].encode("utf-8", "surrogatepass"))
    return any(
        isinstance(node, ast.Call)
        and (node.lineno, node.col_offset, node.end_lineno) == (finding.line, column, finding.end_line)
        for node in ast.walk(tree)
    )
