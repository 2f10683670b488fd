"""Statements of SQL and objects of ORMs in code: whether they may be written twice, by the transaction around."""

import ast
import re

from forbear_audit.libraries import keys, sdks
from forbear_audit.libraries.http import is_reading, read_text
from forbear_audit.libraries.keys import is_inside
from forbear_audit.reading import patterns
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import from_package, walk_inside
from forbear_audit.reading.syntax import calls_in, calls_method, find_all

_RUNS = ("execute", "executemany", "exec_driver_sql", "fetch", "fetchval", "fetchrow", "execute_query")
_BATCHES = ("execute_values", "execute_batch")
_COPIES = ("copy_expert", "copy_from", "copy", "run", "query", "insert")
_TRANSACTIONS = ("begin", "transaction", "atomic", "begin_nested")
_ADDS = ("create", "acreate", "bulk_create", "abulk_create")
_SESSION_ADDS = ("add", "add_all", "bulk_save_objects", "bulk_insert_mappings")
_SAVES = ("save", "asave")
_ORMS = {"mongoengine", "peewee", "tortoise", "beanie", "odmantic"}
_WHY = "the row may have been committed before the failure, and a second one is added"
_STEPS = 4  # from a cursor to its connection


def find_unsafe_statement(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return the text of a statement and why it may not be executed twice, None if it may or if that is unknown.

    A rollback does not help: what is lost may be the answer to the commit.
    """
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in _BATCHES:
        text = _text(module, call.args[1]) if len(call.args) > 1 else None
    elif isinstance(call.func, ast.Attribute) and name in (*_RUNS, *_COPIES, "callproc") and call.args:
        text = "INSERT INTO" if name == "copy_from" else _text(module, call.args[0])
        text = f"CALL {text}" if name == "callproc" else text
    else:
        return None
    if text is not None and patterns.COPIES.search(text):
        text = f"INSERT INTO {text.split()[1]}"
    if text is None or patterns.HARMLESS_INSERTS.search(text):
        return None
    called = patterns.PROCEDURES.search(text)
    acts = called is not None and not is_reading(called[1])
    if not (acts or patterns.INSERTS.search(text) or patterns.ADDING_UPDATES.search(text)):
        return None
    values = module.value(call.args[0]) if call.args else None
    if isinstance(values, ast.Call) and keys.has_own_id(module, module.whole(values), region):
        return None  # a second row with the same id is refused
    others = [each for each in calls_in(region) if each is not call and getattr(each.func, "attr", "") in _RUNS]
    if any(each.args and patterns.REMOVES.search(_text(module, each.args[0]) or "") for each in others):
        return None  # it replaces what was there
    committed = calls_method(region, "commit") or _ends_transaction(module, region)
    if not (committed or _is_autocommit(module, call)):
        return None
    words = " ".join(text.split()[:3])
    how = "the commit may have worked" if committed else "autocommit keeps it after a lost response"
    return words, f"{how}, and there is no ON CONFLICT"


def _text(module: Module, expr: ast.expr) -> str | None:
    value = module.value(expr)
    if isinstance(value, ast.Call) and module.name_of(value.func).endswith("text") and value.args:
        value = module.value(value.args[0])
    if isinstance(value, ast.Call) and getattr(value.func, "attr", "") != "format":  # `insert(table).values(...)`
        whole = ast.unparse(value)
        added = re.search(r"(?:^|\.)insert\(", whole)
        return f"INSERT INTO x {'ON CONFLICT' if 'on_conflict' in whole else ''}" if added else None
    return read_text(module, value) if value is not None else None


def _ends_transaction(module: Module, region: list[ast.stmt]) -> bool:
    """Return whether each attempt begins and commits a transaction, but for files of SQLite."""
    items = [item for node in walk_inside(region) if isinstance(node, (ast.With, ast.AsyncWith)) for item in node.items]
    return "sqlite3" not in module.imports.values() and any(
        getattr(getattr(item.context_expr, "func", item.context_expr), "attr", "") in _TRANSACTIONS
        or patterns.CONNECTIONS.search(ast.unparse(item.context_expr))  # `with connection:` commits or rolls back
        for item in items
    )


def _is_autocommit(module: Module, call: ast.Call) -> bool:
    """Return whether each statement of a connection is committed at once: by its client, an option, or an attribute."""
    first = call.func.value if isinstance(call.func, ast.Attribute) else call.args[0]
    made = sdks.maker(module, first)
    if patterns.AUTOCOMMITS.search(made) or (not made and "asyncpg" in module.imports.values()):
        return True
    function, texts = module.function_of(call), list[str]()
    for _ in range(_STEPS):  # of `engine.connect()`, `connection.cursor()`
        owner = module.value(first)
        if not isinstance(owner, ast.Call):
            break
        texts.append(ast.unparse(owner))
        if not isinstance(owner.func, ast.Attribute):
            break
        first = owner.func.value
    assigned = find_all(function.body if function is not None else (), ast.Assign)
    return any(map(patterns.AUTOCOMMIT.search, [*texts, *map(ast.unparse, assigned)]))


def find_unsafe_model(module: Module, call: ast.Call, region: list[ast.stmt]) -> tuple[str, str] | None:
    """Return what a call writes by an ORM and why it may not be executed twice, None if it may or is no such call."""
    if not isinstance(call.func, ast.Attribute):
        return None
    owner, method = call.func.value, call.func.attr
    made = module.value(owner)
    if module.packages & _ORMS and method in _SAVES and isinstance(made, ast.Call) and is_inside(module, made, region):
        return (f"{ast.unparse(made.func)}.{method}()", _WHY) if ast.unparse(made.func)[:1].isupper() else None
    if "django" in module.packages:
        manager = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "objects" else None
        if method in _ADDS and manager is not None and _is_model(module, manager):
            return f"{ast.unparse(owner)}.{method}()", _WHY
        is_new = isinstance(made, ast.Call) and is_inside(module, made, region) and _is_model(module, made.func)
        if method in _SAVES and isinstance(made, ast.Call) and is_new:
            return f"{ast.unparse(made.func)}.{method}()", _WHY
        updates = method in ("update", "aupdate") and "objects" in ast.unparse(owner)
        sums = [option.value for option in call.keywords if isinstance(option.value, ast.BinOp)]
        if updates and any(ast.unparse(each.func).endswith("F") for each in calls_in(sums)):
            return "an update of a column by itself", "it may have been done before the failure, and adds again"
    is_session = module.packages & {"sqlalchemy", "sqlmodel", "flask_sqlalchemy"} and (
        "session" in ast.unparse(owner).lower() or sdks.maker(module, owner).endswith(("Session", "sessionmaker"))
    )
    commits = is_session and (calls_method(region, "commit") or _ends_transaction(module, region))
    if commits and method in _SESSION_ADDS:
        return f"{ast.unparse(owner)}.{method}()", "the commit may have worked, and a second row is added"
    return None


def _is_model(module: Module, expr: ast.expr) -> bool:
    home, node = module.definition(expr)
    if not isinstance(node, ast.ClassDef):
        return isinstance(expr, ast.Name) and ".models." in module.name_of(expr)
    return any(from_package(home.name_of(base), "django.db.models", "Model") for base in node.bases)
