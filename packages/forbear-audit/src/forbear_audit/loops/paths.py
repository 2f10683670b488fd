"""The ways that code may take after a response with one status: to its end, to the next round, or out of a loop.

Code is read, never run: a test that cannot be decided goes both ways.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from forbear_audit.libraries.errors import error_names, is_status_error
from forbear_audit.loops.statuses import Status, truth
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import ERROR_NAMES, RAISERS

ON, AGAIN, BREAK, RETURN = "on", "again", "break", "return"
_RAISE = "raise "  # with the dotted name of the error behind it
_STATUS_ERROR = f"{_RAISE}requests.HTTPError"
_EXITS = ("sys.exit", "exit", "os._exit", "quit")
_DEEPEST = 2  # functions within functions


def is_exit(statement: ast.stmt) -> bool:
    """Return whether a statement leaves the loop: `return`, `raise`, `break`, or a call that ends the program."""
    if isinstance(statement, (ast.Return, ast.Raise, ast.Break)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and _ends_by_name(call)


def _ends_by_name(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name in _EXITS or bool(RAISERS.search(name))


def is_out(way: str) -> bool:
    """Return whether a way leaves the loop: by `break`, `return`, or an error."""
    return way not in (ON, AGAIN)


def goes_on(module: Module, body: list[ast.stmt], status: Status) -> bool:
    """Return whether code may reach its end, or the next round of its loop, after a response with this status."""
    return not all(map(is_out, Walk(module, status).ways(body)))


def returned(module: Module, function: ast.AST, status: Status) -> set[bool | None]:
    """Return what a predicate may return for a status: True, False, or None for what cannot be read."""
    if isinstance(function, ast.Lambda):
        return {truth(module, function.body, status)}
    if not isinstance(function, ast.FunctionDef):
        return {None}
    values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
    return {truth(module, value, status) for value in values}


@dataclass(frozen=True, slots=True)
class Walk:
    """All ways through statements after a response with `status`.

    A constant that is assigned to one of `flags` leaves the loop, and so does a result for one that is `awaited`. With
    `is_limit` the attempt is the last one: a test for which it is true leaves the loop if it can, and repeats nothing.
    With `fails` code that makes an error and keeps it goes on to the next round. `reached` gets the plain statements
    that run, but those that a limit may prevent.
    """

    module: Module
    status: Status
    flags: frozenset[str] = frozenset()
    is_limit: Callable[[ast.expr], bool] | None = None
    depth: int = 0
    awaited: frozenset[str] = frozenset()
    fails: bool = False
    reached: list[ast.stmt] | None = None

    def ways(self, body: list[ast.stmt]) -> set[str]:
        """Return how statements may end: ON, AGAIN (by `continue`), BREAK, RETURN, or "raise " with an error."""
        ways = {ON}
        for statement in body:
            if self.reached is not None and not hasattr(statement, "body"):
                self.reached.append(statement)
            ways = ways - {ON} | self._of(statement)
            if ON not in ways:
                break
        return ways

    def _of(self, statement: ast.stmt) -> set[str]:
        match statement:
            case ast.Return():
                return {RETURN}
            case ast.Break():
                return {BREAK}
            case ast.Continue():
                return {AGAIN}
            case ast.Raise(exc=error):
                made = error.func if isinstance(error, ast.Call) else error
                return {_RAISE + self.module.name_of(made)}
            case ast.If():
                return self._if(statement)
            case ast.Match():
                return self._match(statement)
            case ast.With() | ast.AsyncWith():
                return self.ways(statement.body)
            case ast.While(test=ast.Constant(value=forever), body=body) if forever:
                ways = self.ways(body)
                return ways - {ON, AGAIN, BREAK} | ({ON} if BREAK in ways or ways <= {ON, AGAIN} else set[str]())
            case ast.For() | ast.AsyncFor() | ast.While():
                return {ON} | self.ways(statement.body) - {AGAIN, BREAK}
            case ast.Try():
                return self._try(statement)
            case ast.Expr(value=ast.Call() as call) | ast.Expr(value=ast.Await(value=ast.Call() as call)):
                return self._call(call)
            case ast.Assign(
                targets=targets, value=ast.Constant(value=bool()) | ast.List(elts=[]) | ast.Dict(keys=[])
            ) if self.flags:
                return {BREAK} if self.flags & set(map(ast.unparse, targets)) else {ON}
            case ast.Assign(value=ast.Call(func=ast.Name(name))) if self.fails and ERROR_NAMES.search(name):
                return {AGAIN}
            case ast.Assign([ast.Name(name)], ast.Compare() | ast.Attribute() | ast.UnaryOp() as value) if (
                name in self.flags - self.awaited
            ):
                is_done = truth(self.module, value, self.status)  # `done = response.status < 300`
                is_flag = self.fails and is_done is None and not isinstance(value, ast.Attribute)
                return {BREAK} if is_done or is_flag else {ON}
            case ast.Assign(targets=targets, value=value) if self.awaited and not isinstance(value, ast.Constant):
                return {BREAK} if self.awaited & set(map(ast.unparse, targets)) else {ON}
            case _:
                return {ON}

    def _if(self, statement: ast.If) -> set[str]:
        value = truth(self.module, statement.test, self.status)
        if value is None and self.reached is not None and self.is_limit is not None and self.is_limit(statement.test):
            return replace(self, reached=None)._if(statement)
        ways = self.ways(statement.body) if value is not False else set[str]()
        ways |= self.ways(statement.orelse) if value is not True else set[str]()
        if self.is_limit is None or not self.is_limit(statement.test):
            return ways
        ended = {way for way in ways if way == RETURN or way.startswith(_RAISE)}
        return ended or ways - {AGAIN} or {ON}

    def _match(self, statement: ast.Match) -> set[str]:
        ways = set[str]()
        for case in statement.cases:
            values = [node.value for node in ast.walk(case.pattern) if isinstance(node, ast.MatchValue)]
            test = ast.Compare(statement.subject, [ast.In()], [ast.Tuple(values, ast.Load())])
            is_any = isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None
            value = is_any or (truth(self.module, test, self.status) if values and case.guard is None else None)
            ways |= self.ways(case.body) if value is not False else set[str]()
            if value:
                return ways
        return ways | {ON}

    def _try(self, attempt: ast.Try) -> set[str]:
        ways = self.ways([*attempt.body, *attempt.orelse])
        for way in [way for way in ways if way.startswith(_RAISE)]:
            name = way.removeprefix(_RAISE)
            handler = next((each for each in attempt.handlers if _catches(self.module, each, name)), None)
            if handler is not None:
                ways = ways - {way} | self.ways(handler.body)
        last = self.ways(attempt.finalbody)
        return ways | last - {ON} if ON in last else last

    def _call(self, call: ast.Call) -> set[str]:
        """Return the ways out of a call: `raise_for_status()`, an exit, or a function whose body can be read."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "raise_for_status":
            if self.status == "any":
                return {ON, _STATUS_ERROR}
            return {ON} if self.status is None or self.status < 400 else {_STATUS_ERROR}
        home, function = self.module.resolve_call(call)
        if function is None or self.depth >= _DEEPEST:
            return {ON} if not _ends_by_name(call) else {_RAISE if "raise_" in ast.unparse(call.func) else RETURN}
        if function not in home.keep(_list_raising):
            return {ON}
        inner = Walk(home, self.status, depth=self.depth + 1).ways(function.body)
        return {way for way in inner if way.startswith(_RAISE)} | ({ON} if inner & {ON, RETURN} else set[str]())


def _list_raising(module: Module) -> set[ast.AST]:
    """Return the functions of a module that have a `raise`."""
    raises = [node for node in module.parents if isinstance(node, ast.Raise)]
    return {around for node in raises for around in module.ancestors(node)}


def _catches(module: Module, handler: ast.ExceptHandler, name: str) -> bool:
    types = ("BaseException",) if handler.type is None else error_names(module, handler.type) or ()
    last = name.rpartition(".")[2]
    return any(
        each in ("Exception", "BaseException")
        or (last and each.rpartition(".")[2] == last)
        or (is_status_error(name) and is_status_error(each))
        for each in types
    )
