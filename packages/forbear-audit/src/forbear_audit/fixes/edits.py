"""`Edit`, a change at a node of the tree; and the names that edits need, with their imports."""

import ast
from dataclasses import dataclass
from typing import Literal

from forbear_audit.fixes.names import bound_names, find_imported_name, is_free
from forbear_audit.reading.modules import Module

Kind = Literal[
    "pass", "drop", "rename", "call", "|", "*", "cap", "await", "from", "import too", "import before", "import after"
]


@dataclass(frozen=True)
class Edit:
    """A change of a kind at a node of the tree, with a name or an expression and, for keywords, their value.

    A call passes a keyword ("pass") or no longer ("drop"); what is only named is called with one ("call"). A function
    or class of the same module is named instead ("rename"). An expression is joined with an operand ("|", "*"), passed
    to `min` ("cap"), or its function is replaced and awaited ("await"). An error is raised "from" a name. A `from`
    import has a name more ("import too"), or a module is imported in a line of its own ("import before", "import
    after").
    """

    kind: Kind
    node: ast.AST
    name: str
    value: str = ""


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
    return name, (Edit("import too", statement, name),)


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
    return (Edit("rename", old, name), *beside[1])


def order_edits(edits: list[Edit]) -> list[Edit]:
    """Return the edits, each once, in the order in which they are made; a module is imported once."""
    result: list[Edit] = []
    imported: set[str] = set()
    for edit in dict.fromkeys(edits):
        if edit.kind in ("import before", "import after"):
            if edit.name in imported:
                continue
            imported.add(edit.name)
        result.append(edit)
    # A cap goes inside of jitter: outside it would make all long waits equal.
    return sorted(result, key=lambda edit: edit.kind != "cap")


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
    return package, (Edit("import before", after, package) if after else Edit("import after", plain[-1], package),)


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
