"""The fixes of loops that are written by hand: jitter and a cap of the wait, an async sleep, and a cause."""

import ast

from forbear_audit.fixes.edits import Edit, Plan, import_of, is_bound, show_number
from forbear_audit.fixes.names import find_imported_name
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import RANDOM
from forbear_audit.reading.scopes import Loop, block_of
from forbear_audit.reading.syntax import names_stored


def plan(module: Module, rule: str, node: ast.AST, cap: float | None) -> Plan | None:
    """Return what cures a finding in a loop, None if there is no cure that is certain."""
    if rule == "LOST-CAUSE" and isinstance(node, ast.Raise):
        return _cause(module, node)
    if not isinstance(node, ast.Call):
        return None
    if rule == "BLOCKING":
        return _async_sleep(module, node)
    wait = node.args[0] if len(node.args) == 1 and not node.keywords else None
    # A name may be logged, too: what is logged must be what is waited.
    if wait is None or isinstance(wait, (ast.Name, ast.Attribute, ast.Starred)):
        return None
    if rule == "NO-JITTER":
        made = import_of(module, "random", wait)
        text = f"{made[0]}.uniform(0.5, 1)" if made else ""
        return Plan((Edit("*", wait, text), *made[1]), f"the wait times `{text}`") if made else None
    if rule == "NO-CAP" and cap is not None and not is_bound(module, "min") and not RANDOM.search(ast.unparse(wait)):
        # Around jitter, a cap would make all long waits equal.
        return Plan((Edit("cap", wait, show_number(cap)),), f"a wait of at most {show_number(cap)} s")
    return None


def _async_sleep(module: Module, call: ast.Call) -> Plan | None:
    """Plan `await asyncio.sleep(...)` where the module imports asyncio, and no other library that has a loop."""
    name = find_imported_name(module, "asyncio", call)
    others = module.packages & {"trio", "anyio", "curio"}
    if name is None or others or not isinstance(module.parents.get(call), ast.Expr) or call.keywords:
        return None
    return Plan((Edit("await", call, f"{name}.sleep"),), f"`await {name}.sleep(...)`")


def _cause(module: Module, node: ast.Raise) -> Plan | None:
    """Plan `from` the name in which every handler of the loop keeps its error, if it is set before the loop, too."""
    if node.cause is not None or node.exc is None:
        return None
    before = _statements_before(module, node)
    loops = [statement for statement in before if isinstance(statement, Loop)]
    if not loops:
        return None
    loop = loops[-1]
    kept: list[set[str]] = []
    for handler in (inner for inner in ast.walk(loop) if isinstance(inner, ast.ExceptHandler)):
        assigns = (each for each in handler.body if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name))
        kept.append(names_stored(each for each in assigns if getattr(each.value, "id", "") == handler.name))
    early = (each for each in before[: before.index(loop)] if isinstance(each, (ast.Assign, ast.AnnAssign)))
    names = names_stored(each for each in early if each.value is not None).intersection(*kept) if kept else set[str]()
    name = min(names, default=None)
    return Plan((Edit("from", node, name),), f"`from {name}`") if name is not None else None


def _statements_before(module: Module, node: ast.stmt) -> list[ast.stmt]:
    """Return the statements of the block before a statement; of a loop's `else`, those before the loop and the loop."""
    parent = module.parents[node]
    name, block, place = block_of(module, node)
    if name == "orelse" and isinstance(parent, Loop):
        return [*_statements_before(module, parent), parent]
    return block[:place]
