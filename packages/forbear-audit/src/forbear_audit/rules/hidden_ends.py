"""LOST-CAUSE of libraries: what is done with the error that they raise in the end, and with swallowed ones."""

import ast
from collections.abc import Iterator

from forbear_audit.libraries.errors import error_names, is_doubtful
from forbear_audit.loops.loop_exits import statements_below
from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import is_none
from forbear_audit.reading.patterns import LOGS, SHOWS_ERRORS
from forbear_audit.reading.retry_use import RetryUse
from forbear_audit.reading.scopes import Function, call_like, keyword
from forbear_audit.reading.syntax import calls_in, find_all, names_stored
from forbear_audit.rules.last_attempt import HIDDEN, LOST, SILENT, Where, find_end, says_nothing, shows

_ENDS = {
    "RetryError": ("tenacity", "requests", "retrying", "google"),
    "MaxRetryError": ("urllib3", "requests"),
    "MaxRetriesExceededError": ("celery",),
}
"""The errors that libraries raise after the last attempt, and which hold the last error."""

_ASKS_RESULT = ("retry_on_result", "retry_if_result", "retry_if_not_result", "on_predicate")


def find_hidden_ends(module: Module) -> Iterator[tuple[str, ast.AST, str, str]]:
    """Yield where the error that a library raises in the end, which holds the last one, is replaced or dropped.

    That is `from None`, or a function for the end of the attempts, or an option for none.
    """
    packages = {package for each in _ENDS.values() for package in each}
    if not module.packages & {*packages, "backoff"}:
        return
    for call in module.calls:
        end = keyword(call, "retry_error_callback")
        if end is not None:
            yield from (("LOST-CAUSE", *found, "tenacity") for found in _read_callback(module, call, end))
        raises, logger = keyword(call, "raise_on_giveup"), keyword(call, "on_giveup", "on_backoff", "logger")
        if raises is not None and module.constant(raises) is False and (logger is None or is_none(logger)):
            yield "LOST-CAUSE", raises, SILENT, "backoff"
    for attempt in module.tries:
        for handler in attempt.handlers:
            types = getattr(handler.type, "elts", [handler.type])
            last = {getattr(each, "attr", module.imports.get(getattr(each, "id", ""), "")) for each in types}
            if not any(name.rpartition(".")[2] in _ENDS for name in last):
                continue
            names = error_names(module, handler.type) or ()
            ends = [name for name in names if name.partition(".")[0] in _ENDS.get(name.rpartition(".")[2], ())]
            if not ends:
                continue
            library = ends[0].partition(".")[0]
            for node in find_all(handler.body, ast.Raise):
                if isinstance(node.cause, ast.Constant):
                    yield "LOST-CAUSE", node, HIDDEN, library
            if _is_silent(handler.body, {handler.name or ""}) and not _is_logged(module, attempt):
                yield "LOST-CAUSE", handler, SILENT, library


def _is_silent(body: list[ast.stmt], names: set[str]) -> bool:
    """Return whether code goes on as if nothing had happened, and does not tell about the error in these names."""
    for statement in body:
        match statement:
            case _ if SHOWS_ERRORS.search(ast.unparse(statement)) or shows(statement, names):
                return False
            case ast.Pass() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Constant()):
                pass
            case ast.Return(value=value) | ast.Assign(value=value) if says_nothing(value):
                pass
            case ast.Expr(value=ast.Call(func=function)) if LOGS.search(ast.unparse(function)):
                pass
            case _:
                return False
    return True


def _is_logged(module: Module, attempt: ast.Try) -> bool:
    """Return whether what is repeated in a `try` logs each failure: by an option of its decorator, or in itself."""
    for call in calls_in(attempt.body):
        function = module.resolve_call(call)[1]
        options = (
            [k.arg for d in function.decorator_list if isinstance(d, ast.Call) for k in d.keywords] if function else []
        )
        if {"before_sleep", "after", "retry_error_callback"} & {*options}:
            return True
        if function is not None and any(map(SHOWS_ERRORS.search, map(ast.unparse, function.body))):
            return True
    return False


def _read_callback(module: Module, call: ast.Call, end: ast.expr) -> Iterator[Where]:
    """Yield where a function for the end of the attempts raises an error without the last one, or tells nobody why."""
    home, defined = module.resolve_call(call_like(end, end))
    function = value if isinstance(value := module.value(end), ast.Lambda) else defined
    if function is None or "outcome" in ast.unparse(function):
        return
    body: list[ast.stmt] = [ast.Return(function.body)] if isinstance(function, ast.Lambda) else function.body
    for node in find_all(body, ast.Raise) if home is module else ():
        if isinstance(node.exc, ast.Call) and node.cause is None:
            yield node, LOST
    errors = ast.unparse(keyword(call, "retry") or call)
    logs = {"after", "before_sleep"} & {option.arg for option in call.keywords} or "if_result" in errors
    if not logs and _is_silent(body, {one.arg for one in function.args.args}):
        yield end, SILENT


def find_swallowed(module: Module, use: RetryUse) -> Iterator[Where]:
    """Yield where a retry repeats by what a function returns, which swallows its errors: nobody sees the last one."""
    asks = any(name in ast.unparse(use.node) for name in _ASKS_RESULT) if isinstance(use.node, ast.Call) else False
    function: Function | None = use.code.function if asks and use.code.loop is None else None
    home, end = module, None
    if use.code.loop is not None and not use.code.tries and not use.code.statuses:
        calls = [call for call in calls_in(use.code.region) if module.resolve_call(call)[1] is not None]
        home, function = module.resolve_call(calls[0]) if calls else (module, None)
        end = find_end(module, statements_below(module, use.code.loop), names_stored(use.code.region), "any")
        is_silent = isinstance(end, ast.Raise) or (isinstance(end, ast.Return) and says_nothing(end.value))
        function = function if is_silent else None
    for handler in find_all(function.body if function is not None else [], ast.ExceptHandler):
        names = error_names(home, handler.type) or ()
        is_foreign = any("." in name or is_doubtful(name, "network") for name in names)
        if is_foreign and any(find_all(handler.body, ast.Return)) and _is_silent(handler.body, {handler.name or ""}):
            yield end or handler, SILENT
