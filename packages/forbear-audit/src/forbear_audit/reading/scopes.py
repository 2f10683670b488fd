"""One file by itself: its tree, imports, definitions and loops, and the parent of every node."""

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import cast

from forbear_audit.reading.statements import find_import, find_swallowing, list_imported_names, open_block

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While

_ENTERED = frozenset({
    ast.Import, ast.ImportFrom, ast.Constant, ast.FunctionDef, ast.AsyncFunctionDef, ast.Call, ast.For, ast.AsyncFor,
    ast.While, ast.Assign, ast.AnnAssign, ast.withitem, ast.NamedExpr, ast.Try,
})  # fmt: skip
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Scopes:
    """One file: its tree, its imports, its definitions, and the parent of every node.

    `path` is the file, for imports from the same package; None for text that has no place.
    """

    def __init__(self, tree: ast.Module, path: Path | None = None) -> None:
        self.tree = tree
        self.path = path
        self.parents: dict[ast.AST, ast.AST] = {}
        self.imports: dict[str, str] = {}
        self.functions: list[Function] = []
        self.calls: list[ast.Call] = []
        self.loops: list[Loop] = []
        self.tries: list[ast.Try] = []
        self.configs: list[ast.Constant] = []
        """The texts that may be, or be a key of, a service config of gRPC."""
        self.top: dict[str, Function | ast.ClassDef] = {}
        self.methods: dict[tuple[ast.ClassDef, str], Function] = {}
        """The functions in the body of each class, by its class and name."""
        self.items_set: dict[tuple[ast.AST, str], list[ast.keyword]] = {}
        """The values of `options["key"] = value` in each function, by the function and the text of the dictionary."""
        self.puts: list[tuple[ast.Name | ast.Attribute, ast.expr, ast.expr]] = []
        """The dictionary, key and value of each `options[key] = value`."""
        self.notes: dict[tuple[ast.AST, str], ast.expr] = {}
        """The annotations of names in each function, class or module, and of `self.name` in each class."""
        self.local: dict[tuple[ast.AST, str], Function] = {}
        """The functions within each function, by their names."""
        self.assigned: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        """The values of the names in each function, class or module; parameters have none until they get another."""
        self.unpacked: dict[tuple[ast.AST, str], tuple[ast.expr, int]] = {}
        """The call that returns a name among others, and its place: `key, body = read(path)`."""
        self.attributes: dict[tuple[ast.AST, str], list[ast.expr]] = {}
        """The values of `self.name` in each class."""
        self.iterated: dict[tuple[ast.AST, str], tuple[ast.expr, int | None]] = {}
        """The expression from which a `for` takes the values of a name, and the place of the name in a tuple."""
        self._scopes: dict[ast.AST, ast.AST] = {tree: tree}
        own = dict(find_swallowing(tree))
        level: list[ast.AST] = [tree]
        for parent in level:  # it grows while it is read
            scope = parent if type(parent) in SCOPES else self._scopes[parent]
            if type(parent) in _ENTERED:
                self._enter(parent)
            for name in parent._fields:
                value: object = getattr(parent, name, None)
                if isinstance(value, list):
                    block = cast("list[object]", value)
                    if any(type(child) in (ast.With, ast.TryStar) for child in block):
                        block[:] = [open_block(c, own) if isinstance(c, (ast.With, ast.TryStar)) else c for c in block]
                    children = [child for child in block if isinstance(child, ast.AST)]
                    self.parents.update(dict.fromkeys(children, parent))
                    self._scopes.update(dict.fromkeys(children, scope))
                    level += children
                elif isinstance(value, ast.AST) and value._fields:
                    self.parents[value], self._scopes[value] = parent, scope
                    level.append(value)
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.top[node.name] = node

    def _enter(self, node: ast.AST) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self.imports.update(list_imported_names(node))
            case ast.Constant(value=str() as text) if "retryPolicy" in text:
                self.configs.append(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions.append(node)
                for one in parameters(node):
                    if one.annotation is not None:
                        self.notes[node, one.arg] = one.annotation
                for each in (*parameters(node), node.args.vararg, node.args.kwarg):
                    if each is not None:
                        self.assigned[node, each.arg] = []  # it hides the names around it
                around = self.parents[node]
                if isinstance(around, ast.ClassDef):
                    self.methods.setdefault((around, node.name), node)
                else:
                    self.local.setdefault((self.scope(node), node.name), node)
            case ast.Call():
                self.calls.append(node)
            case ast.Try():
                self.tries.append(node)
            case ast.For() | ast.AsyncFor() | ast.While():
                self.loops.append(node)
                target = None if isinstance(node, ast.While) else node.target
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                for at, part in enumerate(parts):
                    if isinstance(part, ast.Name) and not isinstance(node, ast.While):
                        index = at if isinstance(target, ast.Tuple) else None
                        self.iterated[self.scope(node), part.id] = node.iter, index
            case ast.Assign():
                for target in node.targets:
                    self._assign(node, target, node.value)
                match node.targets:
                    case [ast.Subscript(value=owner, slice=key)]:
                        if isinstance(key, ast.Constant) and isinstance(key.value, str):
                            item = ast.keyword(arg=key.value, value=node.value)
                            self.items_set.setdefault((self.scope(node), ast.unparse(owner)), []).append(item)
                        if isinstance(owner, (ast.Name, ast.Attribute)):
                            self.puts.append((owner, key, node.value))
                    case _:
                        pass
            case ast.AnnAssign(target=target, annotation=note, value=given):
                place = self.class_of(node) if isinstance(target, ast.Attribute) else self.scope(node)
                if place is not None and isinstance(target, (ast.Name, ast.Attribute)):
                    self.notes[place, target.id if isinstance(target, ast.Name) else target.attr] = note
                if given is not None:
                    self._assign(node, target, given)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._assign(node, target, node.context_expr)
            case ast.NamedExpr():
                self._assign(node, node.target, node.value)
            case _:
                pass

    def _assign(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, other in zip(target.elts, value.elts, strict=True):
                self._assign(node, one, other)
        elif isinstance(target, ast.Tuple) and isinstance(value, (ast.Call, ast.Await)):
            parts = takewhile(lambda each: not isinstance(each, ast.Starred), target.elts)
            places = {one.id: at for at, one in enumerate(parts) if isinstance(one, ast.Name)}
            self.unpacked |= {(self.scope(node), name): (value, at) for name, at in places.items()}
        elif isinstance(target, ast.Name) and (name := find_import(value)) is not None:
            self.imports[target.id] = name
        elif isinstance(target, ast.Name):
            self.assigned.setdefault((self.scope(node), target.id), []).append(value)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            owner = self.class_of(node)
            if owner is not None:
                self.attributes.setdefault((owner, target.attr), []).append(value)

    @cached_property
    def packages(self) -> set[str]:
        """The packages that the file imports, "" for its own."""
        return {name.partition(".")[0] for name in self.imports.values()}

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around `node`, the nearest first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scope(self, node: ast.AST) -> ast.AST:
        """Return the function, class or module whose names `node` sees."""
        known = self._scopes.get(node)
        return known or next((parent for parent in self.ancestors(node) if isinstance(parent, SCOPES)), self.tree)

    def function_of(self, node: ast.AST) -> Function | None:
        """Return the function around `node`, None at the top of the module."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, Function)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class around `node`, None if there is none."""
        return next((parent for parent in self.ancestors(node) if isinstance(parent, ast.ClassDef)), None)

    def owner_of(self, name: ast.expr) -> ast.AST:
        """Return the function, class or module that a name belongs to; of an attribute, that of its first name."""
        while isinstance(name, ast.Attribute):
            name = name.value
        first = name.id if isinstance(name, ast.Name) else ""
        if first in ("self", "cls"):
            return self.class_of(name) or self.tree
        scope = self.scope(name)
        while (scope, first) not in self.assigned and scope is not self.tree:
            scope = self.scope(scope)
        return scope

    def values(self, name: ast.expr) -> list[ast.expr]:
        """Return the expressions that are assigned to a name, or to an attribute of `self`, where `name` stands."""
        if isinstance(name, ast.Name):
            return self.assigned.get((self.owner_of(name), name.id), [])
        if isinstance(name, ast.Attribute) and isinstance(name.value, ast.Name) and name.value.id in ("self", "cls"):
            owner = self.class_of(name)
            if owner is not None:
                return self.attributes.get((owner, name.attr)) or self.assigned.get((owner, name.attr), [])
        return []


def keyword(call: ast.Call, *names: str) -> ast.expr | None:
    """Return the value of the first of these keyword arguments that a call has, None if it has none."""
    return next((item.value for name in names for item in call.keywords if item.arg == name), None)


def list_passed(call: ast.Call) -> list[ast.expr]:
    """Return all that a call passes, by position and by name."""
    return [*call.args, *(option.value for option in call.keywords)]


def find_argument(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """Return what a call passes by one of these names, or at a position; None if it passes nothing."""
    return keyword(call, *names) or next(iter(call.args[position : position + 1]), None)


def has_unknown(call: ast.Call) -> bool:
    """Return whether a call passes keywords that cannot be read: `**options`."""
    return any(item.arg is None for item in call.keywords)


def hides_arguments(call: ast.Call) -> bool:
    """Return whether a call passes arguments that cannot be read."""
    return has_unknown(call) or any(isinstance(item, ast.Starred) for item in call.args)


def call_like(place: ast.expr, function: ast.expr, *options: ast.keyword) -> ast.Call:
    """Return a call of a function, with these keywords, that stands where `place` does."""
    return ast.copy_location(ast.Call(function, [], [*options]), place)


def add_options(call: ast.Call, options: Iterable[ast.keyword]) -> ast.Call:
    """Return a call with these keywords, too, as far as it does not pass them itself."""
    own = {option.arg for option in call.keywords}
    kept = [option for option in options if option.arg not in own]
    return ast.copy_location(ast.Call(call.func, call.args, [*call.keywords, *kept]), call)


def parameters(function: Function) -> list[ast.arg]:
    """Return the parameters of a function that have a name, those that take a position first."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def defaults(function: Function) -> dict[str, ast.expr]:
    """Return the defaults of the parameters of a function."""
    spec = function.args
    pairs = [
        *zip([*spec.posonlyargs, *spec.args][::-1], spec.defaults[::-1], strict=False),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    return {one.arg: value for one, value in pairs if value is not None}


def arguments(function: Function, call: ast.Call, *, is_method: bool) -> dict[str, ast.expr]:
    """Return what a call passes to each parameter; `*args` and `**options` as a tuple and a dictionary."""
    spec = function.args
    order = [one.arg for one in [*spec.posonlyargs, *spec.args]][is_method:]
    given = [*takewhile(lambda item: not isinstance(item, ast.Starred), call.args)]
    passed = dict(zip(order, given, strict=False))
    named = {one.arg for one in parameters(function)}
    passed |= {item.arg: item.value for item in call.keywords if item.arg and item.arg in named}
    if spec.vararg is not None and len(given) == len(call.args):
        passed[spec.vararg.arg] = ast.copy_location(ast.Tuple([*call.args[len(order) :]], ast.Load()), call)
    if spec.kwarg is not None:
        rest = [item for item in call.keywords if item.arg is None or item.arg not in named]
        keys: list[ast.expr | None] = [
            None if item.arg is None else ast.copy_location(ast.Constant(item.arg), call) for item in rest
        ]
        passed[spec.kwarg.arg] = ast.copy_location(ast.Dict(keys, [item.value for item in rest]), call)
    return passed


def block_of(module: "Scopes", statement: ast.AST) -> tuple[str, list[ast.stmt], int]:
    """Return the block of a node around it in which a statement stands, its place, and the name of the block."""
    parent = module.parents[statement]
    for name in ("body", "orelse", "finalbody"):
        value: object = getattr(parent, name, None)
        block = cast("list[ast.stmt]", value) if isinstance(value, list) else []  # a lambda's body is no list
        if statement in block:
            return name, block, [*map(id, block)].index(id(statement))
    return "", [], 0


def walk_inside(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes and all below them, in the order of the text, without the bodies of functions within."""
    stack = [*nodes][::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, SCOPES):
            stack.extend([*ast.iter_child_nodes(node)][::-1])


def following(module: Scopes, statement: ast.AST) -> list[ast.stmt]:
    """Return the statements that follow one in its block, none if a node is no statement."""
    _, block, place = block_of(module, statement)
    return block[place + 1 :]


def from_package(dotted: str, package: str, *names: str) -> bool:
    """Return whether a dotted name is one of `names` of a package or of its modules; without names, any of them."""
    if dotted != package and not dotted.startswith(f"{package}."):
        return False
    return not names or dotted.rpartition(".")[2] in names
