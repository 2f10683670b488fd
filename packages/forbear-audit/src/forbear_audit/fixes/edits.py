"""The kinds of `Edit`, each a change at a node of the tree; and the names that edits need, with their imports."""

import ast
from dataclasses import dataclass
from typing import Literal

from forbear_audit.fixes.names import bound_names, find_imported_name, is_free
from forbear_audit.reading.modules import Module


@dataclass(frozen=True)
class Edit:
    """A change at a node of the tree; each kind of change is a class of its own."""

    node: ast.AST


@dataclass(frozen=True)
class PassKeyword(Edit):
    """Pass a keyword with this value to the call, in place of another value if the call has the keyword."""

    name: str
    value: str


@dataclass(frozen=True)
class DropKeyword(Edit):
    """Pass a keyword to the call no longer."""

    name: str


@dataclass(frozen=True)
class RenameTo(Edit):
    """Name another function or class of the same module."""

    name: str


@dataclass(frozen=True)
class CallWithKeyword(Edit):
    """Call with this keyword what is only named."""

    name: str
    value: str


@dataclass(frozen=True)
class JoinBy(Edit):
    """Join the expression with an operand on its right."""

    operator: Literal["|", "*"]
    operand: str


@dataclass(frozen=True)
class CapAt(Edit):
    """Pass the expression to `min`, with the largest value."""

    largest: str


@dataclass(frozen=True)
class AwaitCall(Edit):
    """Await this function with the arguments of the call."""

    function: str


@dataclass(frozen=True)
class RaiseFrom(Edit):
    """Raise the error from the error with this name."""

    cause: str


@dataclass(frozen=True)
class ImportToo(Edit):
    """Import one more name by the `from` import."""

    name: str


@dataclass(frozen=True)
class ImportModule(Edit):
    """Import a module in a line of its own, before or after the import at the node."""

    name: str
    after: bool = False


@dataclass(frozen=True)
class Plan:
    """The edits that cure one finding, and what they change, for people."""

    edits: tuple[Edit, ...]
    change: str


def show_number(value: float) -> str:
    """Return a number as people write it in code: without a fraction if it has none."""
    return str(int(value)) if value == int(value) else repr(value)


def sibling(module: Module, used: ast.expr, name: str, *packages: str) -> tuple[str, tuple[Edit, ...]] | None:
    """Return how to name something that stands beside `used` in its package, and the import that this needs.

    `used` is the expression of a function or class that the module imports. `packages` are those that have `name`; a
    `from` import of another one is not extended. None if there is no certain way.
    """
    if isinstance(used, ast.Attribute):
        return f"{ast.unparse(used.value)}.{name}", ()
    if not isinstance(used, ast.Name):
        return None
    names = bound_names(module)
    for package in packages:
        known = find_imported_name(module, f"{package}.{name}", used)
        if known == name:
            return name, ()
    statement = _from_import(module, used)
    if statement is None or statement.level or statement.module not in packages or "*" in names:
        return None
    if not is_free(module, name, f"{statement.module}.{name}", used):
        return None
    return name, (ImportToo(statement, name),)


def rename_call(module: Module, call: ast.Call, name: str, *packages: str) -> tuple[Edit, ...] | None:
    """Return the edits by which a call calls the function or class `name` of the same package instead.

    None if there is no certain way.
    """
    beside = sibling(module, call.func, name, *packages)
    if beside is None:
        return None
    old = call.func
    if isinstance(old, ast.Name) and module.imports.get(old.id, "").rpartition(".")[2] != old.id:
        return None  # the old name has another one here, and the new one would look foreign
    return (RenameTo(old, name), *beside[1])


def order_edits(edits: list[Edit]) -> list[Edit]:
    """Return the edits, each once, in the order in which they are made; a module is imported once."""
    result: list[Edit] = []
    imported: set[str] = set()
    for edit in dict.fromkeys(edits):
        if isinstance(edit, ImportModule):
            if edit.name in imported:
                continue
            imported.add(edit.name)
        result.append(edit)
    # A cap goes inside of jitter: outside it would make all long waits equal.
    return sorted(result, key=lambda edit: not isinstance(edit, CapAt))


def import_of(module: Module, package: str, place: ast.AST) -> tuple[str, tuple[Edit, ...]] | None:
    """Return the name of a module of the standard library at a place, and the import that it needs.

    The import goes beside the other plain imports at the top of the file, each in a line of its own. None without any,
    or if the name is taken.
    """
    name = find_imported_name(module, package, place)
    if name is not None:
        return name, ()
    plain = _plain_imports(module, getattr(place, "lineno", 0))
    if not plain or not is_free(module, package, package, place):
        return None
    after = next((node for node in plain if node.names[0].name > package), None)
    return package, (ImportModule(after, package) if after else ImportModule(plain[-1], package, after=True),)


def _plain_imports(module: Module, line: int) -> list[ast.Import]:
    """Return the imports of one module at the top, above a line and all definitions, that have a line of their own."""
    plain: list[ast.Import] = []
    body = module.tree.body
    for at, node in enumerate(body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or node.lineno >= line:
            break
        beside = [*body[max(0, at - 1) : at], *body[at + 1 : at + 2]]
        shares = any(node.lineno in (other.lineno, other.end_lineno) for other in beside)
        if isinstance(node, ast.Import) and len(node.names) == 1 and not shares:
            plain.append(node)
    return plain


def is_bound(module: Module, name: str) -> bool:
    """Return whether anything in the module binds a name, or may bind it: an import of all names of another one."""
    names = bound_names(module)
    return name in names or "*" in names


def _from_import(module: Module, used: ast.Name) -> ast.ImportFrom | None:
    """Return the only `from` import that binds a name, if it stands at the top of the module, and in no block."""
    statements = [
        node
        for node in module.parents
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == used.id for alias in node.names)
    ]
    if len(statements) != 1 or statements[0] not in module.tree.body or statements[0].lineno > used.lineno:
        return None
    return statements[0]
