"""`plan`: the edits that cure a finding, if exactly one cure is certain, in the words of each library."""

import ast
from collections.abc import Callable, Collection
from dataclasses import dataclass

from forbear_audit.fixes import loops
from forbear_audit.fixes.edits import (
    CallWithKeyword,
    DropKeyword,
    Edit,
    JoinBy,
    PassKeyword,
    Plan,
    rename_call,
    sibling,
)
from forbear_audit.reading.modules import Module
from forbear_audit.reading.scopes import from_package, has_unknown, keyword

_WAITS = ("tenacity", "tenacity.wait")


@dataclass(frozen=True)
class FixFigures:
    """The figures that are the user's choice, in seconds: the length of a deadline and the longest wait.

    What needs one that is None is not fixed.
    """

    deadline: float | None = None
    cap: float | None = None


def plan(module: Module, rule: str, node: ast.AST, library: str, figures: FixFigures) -> Plan | None:
    """Return what cures a finding at a node, None if there is no cure that is certain."""
    if library == "loop":
        return loops.plan(module, rule, node, figures.cap)
    if not isinstance(node, ast.expr):
        return None
    if rule == "NO-JITTER":
        maker = _JITTERS.get(library)
        return maker(module, node) if maker is not None else None
    if rule in ("NO-DEADLINE", "UNBOUNDED") and figures.deadline is not None:
        timed = _DEADLINES.get(library)
        return timed(module, node, figures.deadline) if timed is not None else None
    if rule == "NO-CAP" and figures.cap is not None:
        capped = _CAPS.get(library)
        return capped(module, node, figures.cap) if capped is not None else None
    return None


def number(value: float) -> str:
    """Return a number as people write it in code: without a fraction if it has none."""
    return str(int(value)) if value == int(value) else repr(value)


def _call(module: Module, node: ast.expr, package: str, *names: str) -> ast.Call | None:
    """Return the call of one of these functions that `node` is, or is an argument of; None for calls with `**`."""
    parent = module.parents.get(node)
    for candidate in (node, module.parents.get(parent) if isinstance(parent, ast.keyword) else parent):
        if isinstance(candidate, ast.Call) and from_package(module.name_of(candidate.func), package, *names):
            return None if has_unknown(candidate) else candidate
    return None


def _drop_option(
    package: str, names: tuple[str, ...], option: str, value: object
) -> "Callable[[Module, ast.expr], Plan | None]":
    """Return a function that plans to pass an option no longer that has this value, so that its default holds."""

    def maker(module: Module, node: ast.expr) -> Plan | None:
        call = _call(module, node, package, *names)
        current = keyword(call, option) if call is not None else None
        if call is None or not isinstance(current, ast.Constant) or current.value != value:
            return None
        return Plan((DropKeyword(call, option),), f"without `{option}={ast.unparse(current)}`: its default has jitter")

    return maker


def _add_option(
    package: str, names: tuple[str, ...], option: str, text: str
) -> "Callable[[Module, ast.expr], Plan | None]":
    def maker(module: Module, node: ast.expr) -> Plan | None:
        return _keyword(_call(module, node, package, *names), option, text)

    return maker


def _keyword(call: ast.Call | None, option: str, text: str) -> Plan | None:
    """Return the plan to pass an option that is absent or None."""
    current = keyword(call, option) if call is not None else None
    if call is None or (current is not None and not (isinstance(current, ast.Constant) and current.value is None)):
        return None
    return Plan((PassKeyword(call, option, text),), f"`{option}={text}`")


def _tenacity_jitter(module: Module, node: ast.expr) -> Plan | None:
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


def _redis_jitter(module: Module, node: ast.expr) -> Plan | None:
    packages = ("redis.backoff", "valkey.backoff")
    if not isinstance(node, ast.Call) or module.name_of(node.func) not in [f"{p}.ExponentialBackoff" for p in packages]:
        return None
    edits = rename_call(module, node, "FullJitterBackoff", *packages)
    return Plan(edits, "`FullJitterBackoff` instead of `ExponentialBackoff`") if edits else None


def _urllib3_jitter(module: Module, node: ast.expr) -> Plan | None:
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
    text = f"{beside[0]}({number(seconds)})"
    change = f"`stop_after_delay({number(seconds)})`"
    if call is None:
        return Plan((CallWithKeyword(node, "stop", text), *beside[1]), change)
    stop = keyword(call, "stop")
    if stop is None or module.name_of(module.value(stop)).endswith("stop_never"):
        return Plan((PassKeyword(call, "stop", text), *beside[1]), change)
    return Plan((JoinBy(stop, "|", text), *beside[1]), change)


def _tenacity_cap(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    calls = [call for call in _exponentials(module, node) if len(call.args) < 2 and keyword(call, "max") is None]
    if not calls or any(has_unknown(call) for call in calls):
        return None
    text = number(seconds)
    return Plan(tuple(PassKeyword(call, "max", text) for call in calls), f"`max={text}`")


def _retrying(option: str) -> "Callable[[Module, ast.expr, float], Plan | None]":
    """Return a function that plans an option of retrying, which counts in milliseconds."""

    def maker(module: Module, node: ast.expr, seconds: float) -> Plan | None:
        text = number(seconds * 1000)
        if not isinstance(node, ast.Call) and from_package(module.name_of(node), "retrying", "retry"):
            return Plan((CallWithKeyword(node, option, text),), f"`{option}={text}`")
        return _keyword(_call(module, node, "retrying", "retry", "Retrying"), option, text)

    return maker


def _add_seconds(
    package: str, names: tuple[str, ...], option: str
) -> "Callable[[Module, ast.expr, float], Plan | None]":
    """Return a function that plans an option in seconds."""

    def maker(module: Module, node: ast.expr, seconds: float) -> Plan | None:
        return _keyword(_call(module, node, package, *names), option, number(seconds))

    return maker


def _google_deadline(module: Module, node: ast.expr, seconds: float) -> Plan | None:
    call = _call(module, node, "google.api_core")
    options = [name for name in ("timeout", "deadline") if call is not None and keyword(call, name) is not None]
    return _keyword(call, options[0], number(seconds)) if options else None


_BACKOFF = ("on_exception", "on_predicate")
_CELERY = ("task", "shared_task")


def _celery_jitter(module: Module, node: ast.expr) -> Plan | None:
    current = keyword(node, "retry_jitter") if isinstance(node, ast.Call) else None
    if not isinstance(current, ast.Constant) or current.value is not False:
        return None
    return Plan((DropKeyword(node, "retry_jitter"),), "without `retry_jitter=False`: its default has jitter")


_JITTERS: dict[str, Callable[[Module, ast.expr], Plan | None]] = {
    "tenacity": _tenacity_jitter,
    "backoff": _drop_option("backoff", _BACKOFF, "jitter", None),
    "stamina": _drop_option("stamina", ("retry", "retry_context"), "wait_jitter", 0),
    "retrying": _add_option("retrying", ("retry", "Retrying"), "wait_jitter_max", "1000"),
    "urllib3": _urllib3_jitter,
    "httpx-retries": _drop_option("httpx_retries", ("Retry",), "backoff_jitter", 0),
    "redis": _redis_jitter,
    "celery": _celery_jitter,
    "forbear": _drop_option("forbear", ("Exponential",), "jitter", "none"),
}
_DEADLINES: dict[str, Callable[[Module, ast.expr, float], Plan | None]] = {
    "tenacity": _tenacity_deadline,
    "backoff": _add_seconds("backoff", _BACKOFF, "max_time"),
    "stamina": _add_seconds("stamina", ("retry", "retry_context"), "timeout"),
    "retrying": _retrying("stop_max_delay"),
    "google-api-core": _google_deadline,
    "forbear": _add_seconds("forbear", ("retry",), "timeout"),
}
_CAPS: dict[str, Callable[[Module, ast.expr, float], Plan | None]] = {
    "tenacity": _tenacity_cap,
    "backoff": _add_seconds("backoff", _BACKOFF, "max_value"),
    "retrying": _retrying("wait_exponential_max"),
}

TIMED: dict[str, Collection[str]] = dict.fromkeys(("NO-DEADLINE", "UNBOUNDED"), _DEADLINES)
"""The libraries whose findings need the length of a deadline, by the rule."""
CAPPED: dict[str, Collection[str]] = {"NO-CAP": {*_CAPS, "loop"}}
"""The libraries whose findings need the length of the longest wait, by the rule."""
