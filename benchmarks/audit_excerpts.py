"""Excerpts: the code around a line and what it uses, so that a stranger can judge a finding without the package."""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import Function

LONGEST = 80
"""The largest number of lines of a function that an excerpt shows; of a longer one it shows those around the line."""
_DEFINITION, _DEFINITIONS = 25, 120  # lines of one definition, and of all
_MENTIONS = 6


@dataclass(frozen=True)
class Source:
    """A parsed file."""

    path: Path
    lines: list[str]
    module: Module


@lru_cache(8)
def source(path: Path) -> Source | None:
    """Return a file of Python, None if it cannot be parsed."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    return Source(path, text.split("\n"), Module(tree, path))


def start(node: ast.AST) -> int:
    """Return the first line of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([getattr(node, "lineno", 1), *(each.lineno for each in decorators)])


def end(node: ast.AST) -> int:
    """Return the last line of a node."""
    lines: tuple[int | None, int] = (getattr(node, "end_lineno", None), getattr(node, "lineno", 1))
    return lines[0] or lines[1]


def region(code: Source, line: int) -> tuple[ast.AST, int, int]:
    """Return the code to show for a line: a node with its first and last line.

    That is the outermost function around the line that has at most LONGEST lines, else LONGEST lines of the innermost.
    Outside of functions it is the innermost statement, or as much of it as fits.
    """
    functions = [node for node in code.module.functions if start(node) <= line <= end(node)]
    functions.sort(key=lambda node: end(node) - start(node), reverse=True)
    fitting = [node for node in functions if end(node) - start(node) < LONGEST]
    node: ast.AST = fitting[0] if fitting else functions[-1] if functions else _statement(code, line)
    first, last = start(node), end(node)
    if last - first >= LONGEST:
        first = max(first, min(line - LONGEST // 2, last - LONGEST + 1))
        last = first + LONGEST - 1
    return node, first, last


def _statement(code: Source, line: int) -> ast.AST:
    around = [
        node
        for node in ast.walk(code.module.tree)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef) and start(node) <= line <= end(node)
    ]
    return min(around, key=lambda node: end(node) - start(node), default=code.module.tree)


def excerpt(code: Source, line: int) -> str:
    """Return the code around a line with numbers, the line marked by ">", and the definitions that it uses."""
    node, first, last = region(code, line)
    parts = [_class_line(code, node), _numbered(code, first, last, line)]
    if first > start(node):
        parts.insert(1, _numbered(code, start(node), _head_end(node)) + "\n    ...")
    if last < end(node):
        parts.append(f"    ... (ends in line {end(node)})")
    used = list(_definitions(code, node, first, last)) + list(_mentions(code, node))
    if used:
        parts += ["", "    # used above, from elsewhere", *used]
    return "\n".join(part for part in parts if part is not None)


def _class_line(code: Source, node: ast.AST) -> str | None:
    owner = code.module.class_of(node)
    return _numbered(code, owner.lineno, owner.lineno) if owner is not None else None


def _head_end(node: ast.AST) -> int:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return max(node.lineno, node.body[0].lineno - 1)
    return start(node)


def _numbered(code: Source, first: int, last: int, marked: int = 0) -> str:
    return "\n".join(
        f"{'>' if number == marked else ' '}{number:5} {code.lines[number - 1][:200]}"
        for number in range(first, last + 1)
    )


def _definitions(code: Source, node: ast.AST, first: int, last: int) -> Iterator[str]:
    """Yield the imports, values, classes and functions elsewhere that the lines use, up to a number of lines."""
    shown: set[tuple[Path | None, int]] = set()
    left = _DEFINITIONS
    inner = [n for n in ast.walk(node) if first <= getattr(n, "lineno", start(node)) <= last]
    places = [place for n in inner if isinstance(n, (ast.Name, ast.Attribute)) for place in _origins(code, n)]
    places += [place for n in inner if isinstance(n, ast.Call) for place in _callee(code, n)]
    for home, place in places:
        key = (home.path, start(place))
        inside = home is code and first <= start(place) <= last
        if inside or key in shown or left <= 0:
            continue
        shown.add(key)
        shortened = min(end(place), start(place) + _DEFINITION - 1)
        left -= shortened - start(place) + 1
        where = "" if home is code else f"    # in {home.path.parent.name}/{home.path.name}\n"
        yield where + _numbered(home, start(place), shortened) + ("\n    ..." if shortened < end(place) else "")


def _origins(code: Source, name: ast.Name | ast.Attribute) -> Iterator[tuple[Source, ast.AST]]:
    """Yield the statements that give a name its value: imports, assignments, classes."""
    module = code.module
    if isinstance(name, ast.Name) and name.id in module.imports and not module.values(name):
        for statement in ast.walk(module.tree):
            if isinstance(statement, (ast.Import, ast.ImportFrom)) and any(
                (alias.asname or alias.name.partition(".")[0]) == name.id for alias in statement.names
            ):
                yield code, statement
                return
    if isinstance(name, ast.Name) and isinstance(module.top.get(name.id), ast.ClassDef):
        yield code, module.top[name.id]
    for value in module.values(name)[:3]:
        assignment = next((p for p in module.ancestors(value) if isinstance(p, ast.stmt)), None)
        if assignment is not None:
            yield code, assignment


def _callee(code: Source, call: ast.Call) -> Iterator[tuple[Source, Function]]:
    """Yield the function of the same package that a call calls."""
    home, function = code.module.resolve_call(call)
    if function is None:
        return
    if home is code.module:
        yield code, function
    elif home.path is not None:
        other = source(home.path)
        if other is not None:
            yield other, function


def _mentions(code: Source, node: ast.AST) -> Iterator[str]:
    """Yield the lines that use what a statement outside of functions defines, such as a shared policy."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    uses = [n for n in ast.walk(code.module.tree) if isinstance(n, ast.Name) and n.id in names]
    lines = sorted({n.lineno for n in uses if not start(node) <= n.lineno <= end(node)})
    for number in lines[:_MENTIONS]:
        yield _numbered(code, number, min(number + 1, len(code.lines)))
