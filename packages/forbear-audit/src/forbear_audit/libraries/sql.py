"""Statements of SQL in code: whether one may be executed twice, by its text and by the transaction around it."""

import ast
from collections.abc import Iterable

from forbear_audit.reading.modules import Module, keyword
from forbear_audit.reading.name_patterns import CONNECTIONS
from forbear_audit.reading.syntax import calls_method
from forbear_audit.reading.text_patterns import ADDING_UPDATES, HARMLESS_INSERTS, INSERTS

_RUNS = ("execute", "executemany", "exec_driver_sql", "fetch", "fetchval", "fetchrow")
_TRANSACTIONS = ("begin", "transaction", "atomic", "begin_nested")
_AUTOCOMMIT = ("autocommit", "isolation_level")


def find_unsafe_statement(
    module: Module, call: ast.Call, region: list[ast.stmt], handlers: Iterable[ast.AST]
) -> tuple[str, str] | None:
    """Return the text of a statement and why it may not be executed twice, None if it may or if that is unknown.

    A transaction that is rolled back after a failure undoes the statement. So does a rollback in `handlers`.
    """
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in _RUNS and call.args):
        return None
    text = _text(module, call.args[0])
    if text is None or HARMLESS_INSERTS.search(text) or not (INSERTS.search(text) or ADDING_UPDATES.search(text)):
        return None
    if _is_in_transaction(module, call) or calls_method(handlers, "rollback"):
        return None
    committed = calls_method(region, "commit")
    if not (committed or _is_autocommit(module, call)):
        return None
    words = " ".join(text.split()[:3])
    how = "the commit may have worked" if committed else "autocommit keeps it after a lost response"
    return words, f"{how}, and there is no ON CONFLICT and no rollback"


def _text(module: Module, expr: ast.expr) -> str | None:
    value = module.value(expr)
    if isinstance(value, ast.Call) and module.name_of(value.func).endswith("text") and value.args:
        value = module.value(value.args[0])
    if isinstance(value, ast.JoinedStr):
        return "".join(str(v.value) if isinstance(v, ast.Constant) else "x" for v in value.values)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _is_in_transaction(module: Module, call: ast.Call) -> bool:
    for parent in module.ancestors(call):
        if isinstance(parent, (ast.With, ast.AsyncWith)):
            for item in parent.items:
                expr = item.context_expr
                if (
                    isinstance(expr, ast.Call)
                    and isinstance(expr.func, ast.Attribute)
                    and expr.func.attr in _TRANSACTIONS
                ):
                    return True
                if isinstance(expr, (ast.Name, ast.Attribute)) and CONNECTIONS.search(ast.unparse(expr)):
                    return True  # `with connection:` commits or rolls back
    return False


def _is_autocommit(module: Module, call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)  # noqa: S101 - for type checkers
    owner = module.value(call.func.value)
    while isinstance(owner, ast.Call) and isinstance(owner.func, ast.Attribute) and not keyword(owner, *_AUTOCOMMIT):
        inner = module.value(owner.func.value)  # of `engine.connect()`, `connection.cursor()`
        if not isinstance(inner, ast.Call):
            break
        owner = inner
    if not isinstance(owner, ast.Call):
        return False
    option = keyword(owner, *_AUTOCOMMIT)
    value = module.constant(option) if option is not None else False
    named = keyword(owner, "autocommit") is not None
    return (named and value is True) or (not named and option is not None and value in (None, "AUTOCOMMIT"))
