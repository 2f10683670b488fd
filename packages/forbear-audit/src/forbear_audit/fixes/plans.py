"""`plan`: the edits that cure a finding, if exactly one cure is certain, in the words of each library."""

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass

from forbear_audit.fixes.edits import Edit, Plan, import_of, is_bound, rename_call, show_number, sibling
from forbear_audit.fixes.names import find_imported_name
from forbear_audit.reading.modules import Module
from forbear_audit.reading.patterns import RANDOM
from forbear_audit.reading.scopes import Loop, block_of, from_package, has_unknown, keyword
from forbear_audit.reading.syntax import names_stored

Maker = Callable[[Module, ast.expr, float], Plan | None]
"""Plans the cure of a finding at a node, with a figure in seconds for those that need one."""

_WAITS = ("tenacity", "tenacity.wait")


@dataclass(frozen=True)
class FixFigures:
    """The figures that are the user's choice, in seconds: the length of a deadline and the longest wait.

    What needs one that is None is not fixed. Example: see `fix`.
    """

    deadline: float | None = None
    cap: float | None = None


def plan(module: Module, rule: str, node: ast.AST, library: str, figures: FixFigures) -> Plan | None:
    """Return what cures a finding at a node, None if there is no cure that is certain."""
    if library == "loop":
        return _plan_loop(module, rule, node, figures.cap)
    if not isinstance(node, ast.expr):
        return None
    makers, seconds = {
        "NO-JITTER": (_JITTERS, 0.0),
        "NO-DEADLINE": (_DEADLINES, figures.deadline),
        "UNBOUNDED": (_DEADLINES, figures.deadline),
        "NO-CAP": (_CAPS, figures.cap),
    }.get(rule, (_CAPS, None))
    maker = makers.get(library)
    return maker(module, node, seconds) if maker is not None and seconds is not None else None


def _call(module: Module, node: ast.expr, package: str, *names: str) -> ast.Call | None:
    """Return the call of one of these functions that `node` is, or is an argument of; None for calls with `**`.

    Without a package any call is one.
    """
    parent = module.parents.get(node)
    for candidate in (node, module.parents.get(parent) if isinstance(parent, ast.keyword) else parent):
        if isinstance(candidate, ast.Call) and (
            not package or from_package(module.name_of(candidate.func), package, *names)
        ):
            return None if has_unknown(candidate) else candidate
    return None


def _drop_option(package: str, names: tuple[str, ...], option: str, value: object) -> Maker:
    """Return a function that plans to pass an option no longer that has this value, so that its default holds."""

    def maker(module: Module, node: ast.expr, seconds: float) -> Plan | None:
        call = _call(module, node, package, *names)
        current = keyword(call, option) if call is not None else None
        if call is None or not isinstance(current, ast.Constant) or current.value != value:
            return None
        return Plan((Edit("drop", call, option),), f"without `{option}={ast.unparse(current)}`: its default has jitter")

    return maker


def _add_option(package: str, names: tuple[str, ...], option: str, text: str = "", factor: int = 1) -> Maker:
    """Return a function that plans an option with a text, or in seconds times a factor."""

    def maker(module: Module, node: ast.expr, seconds: float) -> Plan | None:
        value = text or show_number(seconds * factor)
        if not isinstance(node, ast.Call) and from_package(module.name_of(node), package, *names):
            return Plan((Edit("call", node, option, value),), f"`{option}={value}`")
        return _keyword(_call(module, node, package, *names), option, value)

    return maker


def _keyword(call: ast.Call | None, option: str, text: str) -> Plan | None:
    """Return the plan to pass an option that is absent or None."""
    current = keyword(call, option) if call is not None else None
    if call is None or (current is not None and not (isinstance(current, ast.Constant) and current.value is None)):
        return None
    return Plan((Edit("pass", call, option, text),), f"`{option}={text}`")


def _tenacity_jitter(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    edits: list[Edit] = []
    for call in _exponentials(module, node):
        made = rename_call(module, call, "wait_random_exponential", *_WAITS)
        if made is None:
            return None
        edits += made
    return Plan(tuple(edits), "`wait_random_exponential` instead of `wait_exponential`") if edits else None


def _exponentials(module: Module, node: ast.expr) -> list[ast.Call]:
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    return [call for call in calls if from_package(module.name_of(call.func), "tenacity", "wait_exponential")]


def _redis_jitter(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    packages = ("redis.backoff", "valkey.backoff")
    if not isinstance(node, ast.Call) or module.name_of(node.func) not in [f"{p}.ExponentialBackoff" for p in packages]:
        return None
    edits = rename_call(module, node, "FullJitterBackoff", *packages)
    return Plan(edits, "`FullJitterBackoff` instead of `ExponentialBackoff`") if edits else None


def _urllib3_jitter(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    """Plan jitter where another option proves urllib3 2; version 1 has no jitter, and would raise a TypeError."""
    call = _call(module, node, "urllib3", "Retry") or _call(module, node, "requests", "Retry")
    return _keyword(call, "backoff_jitter", "1") if call is not None and keyword(call, "backoff_max") else None


def _tenacity_deadline(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    call = node if isinstance(node, ast.Call) else None
    function = call.func if call is not None else node
    if not from_package(module.name_of(function), "tenacity", "retry", "Retrying", "AsyncRetrying"):
        return None
    beside = sibling(module, function, "stop_after_delay", "tenacity")
    if beside is None or (call is not None and (call.args or has_unknown(call))):
        return None
    text = f"{beside[0]}({show_number(seconds)})"
    change = f"`stop_after_delay({show_number(seconds)})`"
    if call is None:
        return Plan((Edit("call", node, "stop", text), *beside[1]), change)
    stop = keyword(call, "stop")
    if stop is None or module.name_of(module.value(stop)).endswith("stop_never"):
        return Plan((Edit("pass", call, "stop", text), *beside[1]), change)
    return Plan((Edit("|", stop, text), *beside[1]), change)


def _tenacity_cap(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    calls = [call for call in _exponentials(module, node) if len(call.args) < 2 and keyword(call, "max") is None]
    if not calls or any(has_unknown(call) for call in calls):
        return None
    text = show_number(seconds)
    return Plan(tuple(Edit("pass", call, "max", text) for call in calls), f"`max={text}`")


def _google_deadline(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    call = _call(module, node, "google.api_core")
    options = [name for name in ("timeout", "deadline") if call is not None and keyword(call, name) is not None]
    return _keyword(call, options[0], show_number(seconds)) if options else None


_BACKOFF = ("on_exception", "on_predicate")
_RETRYING = ("retry", "Retrying")
_STAMINA = ("retry", "retry_context")

_JITTERS: dict[str, Maker] = {
    "tenacity": _tenacity_jitter,
    "backoff": _drop_option("backoff", _BACKOFF, "jitter", None),
    "stamina": _drop_option("stamina", _STAMINA, "wait_jitter", 0),
    "retrying": _add_option("retrying", _RETRYING, "wait_jitter_max", "1000"),
    "urllib3": _urllib3_jitter,
    "httpx-retries": _drop_option("httpx_retries", ("Retry",), "backoff_jitter", 0),
    "redis": _redis_jitter,
    "celery": _drop_option("", (), "retry_jitter", value=False),
    "forbear": _drop_option("forbear", ("Exponential",), "jitter", "none"),
}
_DEADLINES: dict[str, Maker] = {
    "tenacity": _tenacity_deadline,
    "backoff": _add_option("backoff", _BACKOFF, "max_time"),
    "stamina": _add_option("stamina", _STAMINA, "timeout"),
    "retrying": _add_option("retrying", _RETRYING, "stop_max_delay", factor=1000),
    "google-api-core": _google_deadline,
    "forbear": _add_option("forbear", ("retry",), "timeout"),
}
_CAPS: dict[str, Maker] = {
    "tenacity": _tenacity_cap,
    "backoff": _add_option("backoff", _BACKOFF, "max_value"),
    "retrying": _add_option("retrying", _RETRYING, "wait_exponential_max", factor=1000),
}

TIMED: dict[str, Collection[str]] = dict.fromkeys(("NO-DEADLINE", "UNBOUNDED"), _DEADLINES)
"""The libraries whose findings need the length of a deadline, by the rule."""
CAPPED: dict[str, Collection[str]] = {"NO-CAP": {*_CAPS, "loop"}}
"""The libraries whose findings need the length of the longest wait, by the rule."""


def _plan_loop(module: Module, rule: str, node: ast.AST, cap: float | None) -> Plan | None:
    """Return what cures a finding in a loop that is written by hand: jitter, a cap, an async sleep, a cause."""
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
