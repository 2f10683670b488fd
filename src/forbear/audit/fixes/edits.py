"""`Edit`: one change of the text, at a node of the tree; and the names that an edit needs, with their imports."""

import ast
from dataclasses import dataclass
from typing import Literal

from forbear.audit.modules import Module, from_package

Operation = Literal[
    "keyword", "drop", "rename", "call", "or", "times", "cap", "await", "from", "also", "instead", "import"
]


@dataclass(frozen=True)
class Edit:
    """A change at a node: what to do there, and the name and the text that it takes.

    - keyword: pass the keyword `name` with the value `text`; drop: pass it no longer
    - rename: call the function or class `name` of the same module
    - call: call what is only named, with the keyword `name`
    - or, times: join the expression with `text` by `|` or `*`; cap: pass it to `min` with `text`
    - await: await the function `text` with the arguments of the call
    - from: raise the error from the name `text`
    - also, instead: import `name` too, or instead of `text`; import: import the module `name` before the node or, with
      the text "after", after it
    """

    node: ast.AST
    operation: Operation
    name: str = ""
    text: str = ""


@dataclass(frozen=True)
class Plan:
    """The edits that cure one finding, and what they change, for people."""

    edits: tuple[Edit, ...]
    change: str


def sibling(module: Module, used: ast.expr, name: str, *packages: str) -> tuple[str, tuple[Edit, ...]] | None:
    """Return how to name something that stands beside `used` in its package, and the import that this needs.

    `used` is the expression of a function or class that the module imports. `packages` are those that have `name`; a
    `from` import of another one is not extended. None if there is no certain way.
    """
    if isinstance(used, ast.Attribute):
        return f"{ast.unparse(used.value)}.{name}", ()
    if not isinstance(used, ast.Name):
        return None
    bound = module.imports.get(name)
    if bound is not None:
        return (name, ()) if any(from_package(bound, package, name) for package in packages) else None
    if is_bound(module, name):
        return None
    statement = _from_import(module, used.id)
    if statement is None or statement.level or statement.module not in packages:
        return None
    return name, (Edit(statement, "also", name),)


def renamed(module: Module, call: ast.Call, name: str, *packages: str) -> tuple[Edit, ...] | None:
    """Return the edits by which a call calls the function or class `name` of the same package instead.

    None if there is no certain way.
    """
    beside = sibling(module, call.func, name, *packages)
    if beside is None:
        return None
    edits, old = beside[1], call.func
    if isinstance(old, ast.Name):
        if module.imports[old.id].rpartition(".")[2] != old.id:
            return None  # the old name has another one here, and the new one would look foreign
        edits = tuple(Edit(edit.node, edit.operation, edit.name, old.id) for edit in edits)
    return (Edit(old, "rename", name), *edits)


def settled(module: Module, edits: list[Edit]) -> list[Edit]:
    """Return the edits, each once, where an import takes the place of one that no code uses any more."""
    gone = {edit.node for edit in edits if edit.operation == "rename"}
    is_package = module.path is not None and module.path.name == "__init__.py"
    result: list[Edit] = []
    for edit in dict.fromkeys(edits):
        if edit.operation == "also" and edit.text:
            needed = is_package or any(
                (isinstance(node, ast.Name) and node.id == edit.text and node not in gone)
                or (isinstance(node, ast.Constant) and node.value == edit.text)  # perhaps in __all__
                for node in module.parents
            )
            operation: Operation = "also" if needed else "instead"
            result.append(Edit(edit.node, operation, edit.name, "" if needed else edit.text))
        else:
            result.append(edit)
    # A cap goes inside of jitter: outside it would make all long waits equal.
    return sorted(dict.fromkeys(result), key=lambda edit: edit.operation != "cap")


def module_name(module: Module, package: str) -> str | None:
    """Return the name that stands for an imported module, None if nothing does."""
    return next((name for name, dotted in module.imports.items() if dotted == package), None)


def import_of(module: Module, package: str) -> tuple[str, tuple[Edit, ...]] | None:
    """Return the name of a module of the standard library, and the import that it needs.

    The import goes beside the other plain imports at the top of the file. None without any, or if the name is taken.
    """
    name = module_name(module, package)
    if name is not None:
        return name, ()
    if is_bound(module, package):
        return None
    plain = [node for node in module.tree.body if isinstance(node, ast.Import) and len(node.names) == 1]
    after = next((node for node in plain if node.names[0].name > package), None)
    if not plain:
        return None
    return package, (Edit(after, "import", package) if after else Edit(plain[-1], "import", package, "after"),)


def is_bound(module: Module, name: str) -> bool:
    """Return whether anything in the module binds a name: an import, a definition, a parameter or an assignment."""
    if name in module.imports or name in module.top:
        return True
    for node in module.parents:
        match node:
            case ast.Name(id=other, ctx=ast.Store() | ast.Del()) if other == name:
                return True
            case ast.arg(arg=other) if other == name:
                return True
            case ast.FunctionDef(name=other) | ast.AsyncFunctionDef(name=other) | ast.ClassDef(name=other):
                if other == name:
                    return True
            case ast.ExceptHandler(name=other) if other == name:
                return True
            case _:
                pass
    return False


def _from_import(module: Module, name: str) -> ast.ImportFrom | None:
    """Return the only `from` import that binds a name, if it stands at the top of the module or in its blocks."""
    statements = [
        node
        for node in module.parents
        if isinstance(node, ast.ImportFrom) and any((alias.asname or alias.name) == name for alias in node.names)
    ]
    if len(statements) != 1 or module.function_of(statements[0]) or module.class_of(statements[0]):
        return None
    return statements[0]
