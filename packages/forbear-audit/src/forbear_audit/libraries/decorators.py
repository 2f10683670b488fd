"""The decorators: tenacity, backoff, stamina, opnieuw, retrying and forbear."""

import ast
import math
from collections.abc import Callable, Iterator

from forbear_audit.libraries.errors import error_names, join_names, names_of_predicate
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import (
    Limits,
    RetriedErrors,
    RetryPolicy,
    Wait,
    Waits,
    choose_kind,
    grows_to,
    seconds,
)
from forbear_audit.reading.scopes import find_argument, from_package, keyword

ALL = ("Exception",)
_EXPONENTIAL = ("wait_exponential", "wait_random_exponential", "wait_full_jitter", "wait_exponential_jitter")
"""The waits of tenacity that grow without a cap if they have no `max`. All but the first have jitter."""

_BY_TYPE = ("retry_if_exception_type", "retry_if_result", "retry_if_not_result")
"""The conditions of tenacity by type and by result; the others choose among errors."""


def _count(module: Module, limit: ast.expr | None, default: int | None = None) -> float | None:
    """Return a limit of attempts: infinity for None, and None if it cannot be read."""
    value = default if limit is None else module.constant(limit)
    return math.inf if value is None else value if isinstance(value, int) else None


def _is_set(module: Module, limit: ast.expr | None) -> bool:
    return limit is not None and module.constant(limit) is not None


def _read_tenacity(module: Module, call: ast.Call) -> RetryPolicy:
    limits = _tenacity_limits(module, module.value(keyword(call, "stop")))
    waits = _tenacity_waits(module, module.value(keyword(call, "wait")), limits.attempts)
    return RetryPolicy("tenacity", limits, waits, _tenacity_errors(module, call))


def _tenacity_errors(module: Module, call: ast.Call) -> RetriedErrors:
    condition = module.value(keyword(call, "retry"))
    if condition is None:
        return RetriedErrors(ALL, call)
    parts = [*_list_conditions(module, condition)]
    by_type = [part for part, name in parts if name == _BY_TYPE[0]]
    types = [error_names(module, part.args[0]) if part.args else ALL for part in by_type]
    others = {name for _, name in parts if name not in _BY_TYPE}
    if not types and any("not_exception_type" in name or "unless" in name for name in others):
        types = [ALL]
    chosen = [part for part, name in parts if name == "retry_if_exception" and part.args and not types]
    types += [names_of_predicate(module, part.args[0]) for part in chosen]
    if not parts or "" in others or (others and not types):
        return RetriedErrors(None, condition)
    return RetriedErrors(join_names(types), condition, has_predicate=bool(others))


def _list_conditions(module: Module, expr: ast.expr) -> Iterator[tuple[ast.Call, str]]:
    """Yield the conditions that `|`, `&`, retry_any and retry_all join, with the last parts of their names."""
    value = module.value(expr)
    if isinstance(value, (ast.BinOp, ast.IfExp)):
        for side in (value.left, value.right) if isinstance(value, ast.BinOp) else (value.body, value.orelse):
            yield from _list_conditions(module, side)
    elif isinstance(value, ast.Call):
        name = module.name_of(value.func)
        if from_package(name, "tenacity", "retry_any", "retry_all"):
            for item in value.args:
                yield from _list_conditions(module, item)
        else:
            yield value, name.rpartition(".")[2] if from_package(name, "tenacity") else ""


def _calls_of(module: Module, expr: ast.expr, *names: str) -> list[ast.Call]:
    calls = [node for node in ast.walk(expr) if isinstance(node, ast.Call)]
    return [call for call in calls if module.name_of(call.func).rpartition(".")[2] in names]


def _last_names(module: Module, expr: ast.expr | None) -> list[str]:
    """Return the last part of the names of all of tenacity's functions in an expression."""
    nodes = ast.walk(expr) if expr is not None else ()
    dotted = [module.name_of(node) for node in nodes if isinstance(node, (ast.Name, ast.Attribute))]
    return [name.rpartition(".")[2] for name in dotted if from_package(name, "tenacity") and "_" in name]


def _tenacity_limits(module: Module, stop: ast.expr | None) -> Limits:
    if stop is None or module.name_of(stop).endswith("stop_never"):
        return Limits(math.inf, deadline=False)
    names = set(_last_names(module, stop))
    timed = bool(names & {"stop_after_delay", "stop_before_delay"})
    counts = _calls_of(module, stop, "stop_after_attempt")
    known = {"stop_after_attempt", "stop_after_delay", "stop_before_delay", "stop_any", "stop_all"}
    if not names or names - known or not (counts or timed):
        return Limits()  # an object of the user's own, or names that cannot be followed
    both = "stop_all" in names or any(isinstance(node, ast.BitAnd) for node in ast.walk(stop))
    value = module.constant(counts[0].args[0]) if counts and counts[0].args else None
    attempts = math.inf if not counts else value if isinstance(value, int) else None
    return Limits(attempts, deadline=timed and not (both and counts))


def _tenacity_waits(module: Module, wait: ast.expr | None, attempts: float | None) -> Waits:
    names = set(_last_names(module, wait))
    if wait is None or names == {"wait_none"}:
        return Waits("none", node=wait)
    if names & {*_EXPONENTIAL, "wait_incrementing"}:
        longest = None
        growing = _calls_of(module, wait, *_EXPONENTIAL)
        first, base, kind = 1.0, 2.0, choose_kind(None, None, None)
        cap = find_argument(growing[0], 1, "max") if growing else None
        if growing:
            first = seconds(module.constant(find_argument(growing[0], 0, "multiplier", "initial")), 1)
            base = seconds(module.constant(keyword(growing[0], "exp_base")), 2)
            least = seconds(module.constant(keyword(growing[0], "min")), 0)
            kind = choose_kind(max(first, least), base, module.constant(cap))
        if growing and cap is None:
            longest = grows_to(first, base, attempts)
        return Waits(kind, bool(names & {*_EXPONENTIAL[1:], "wait_random"}), longest, wait)
    if names & {"wait_fixed", "wait_random"} and "wait_chain" not in names:
        return Waits("fixed", "wait_random" in names, node=wait)
    return Waits(node=wait)


def _read_backoff(module: Module, call: ast.Call) -> RetryPolicy:
    limits = Limits(_count(module, keyword(call, "max_tries")), _is_set(module, keyword(call, "max_time")))
    errors = RetriedErrors()
    if module.name_of(call.func).endswith("on_exception"):
        node = call.args[1] if len(call.args) > 1 else keyword(call, "exception")
        names = error_names(module, node) if node is not None else None
        errors = RetriedErrors(names, node, has_predicate=keyword(call, "giveup") is not None)
    return RetryPolicy("backoff", limits, _backoff_waits(module, call, limits.attempts), errors)


def _backoff_waits(module: Module, call: ast.Call, attempts: float | None) -> Waits:
    generator = module.name_of(call.args[0] if call.args else keyword(call, "wait_gen")).rpartition(".")[2]
    jitter = keyword(call, "jitter") is None or _is_set(module, keyword(call, "jitter"))
    longest, cap = None, keyword(call, "max_value")
    base = seconds(module.constant(keyword(call, "base")), 2) if generator == "expo" else 1.62
    first = seconds(module.constant(keyword(call, "factor")), 1)
    if generator in ("expo", "fibo") and cap is None:
        longest = grows_to(first, base, attempts)
    kind = choose_kind(first, base, module.constant(cap))
    kinds: dict[str, Wait] = {"constant": "fixed", "expo": kind, "fibo": kind}
    node = call.args[0] if call.args else call
    return Waits(kinds.get(generator, "unknown"), jitter, longest, node, reads_header=generator == "runtime")


def _read_stamina(module: Module, call: ast.Call) -> RetryPolicy:
    on = find_argument(call, 0, "on")
    given = [module.constant(keyword(call, name)) for name in ("wait_initial", "wait_exp_base", "wait_max")]
    first, base, cap = (seconds(value, usual) for value, usual in zip(given, (0.1, 2, 5), strict=True))
    waits = Waits(choose_kind(first, base, cap), module.constant(keyword(call, "wait_jitter")) not in (0, 0.0))
    names = _types_only(module, on)
    chosen = names_of_predicate(module, on) if names is None else None
    errors = RetriedErrors(names or chosen, on, has_predicate=chosen is not None)
    return RetryPolicy("stamina", _read_limits(module, call, 10), waits, errors)


def _types_only(module: Module, on: ast.expr | None) -> tuple[str, ...] | None:
    """Return the error types of `on`, None if it may be a function."""
    names = error_names(module, on)
    return names if names is not None and all(n.rpartition(".")[2][:1].isupper() for n in names) else None


def _read_limits(module: Module, call: ast.Call, default: int) -> Limits:
    """Return the limits by `attempts` and `timeout`, which have defaults; None switches one off."""
    timeout = keyword(call, "timeout")
    return Limits(_count(module, keyword(call, "attempts"), default), timeout is None or _is_set(module, timeout))


def _read_forbear(module: Module, call: ast.Call) -> RetryPolicy:
    on = keyword(call, "on")
    expr = on or (ast.Tuple(elts=call.args, ctx=ast.Load()) if call.args else None)
    node = on or (call.args[0] if call.args else call)
    errors = RetriedErrors(_types_only(module, expr), node)
    if any(from_package(name, "forbear", "transient", "transaction") for name in error_names(module, expr) or ()):
        errors = RetriedErrors(("forbear.transient",), node, has_predicate=True)
    waits = Waits("growing", jitter=True)
    backoff = module.value(keyword(call, "backoff"))
    if isinstance(backoff, ast.Call):
        kind: Wait = "fixed" if module.name_of(backoff.func).endswith("Constant") else "growing"
        waits = Waits(kind, module.constant(keyword(backoff, "jitter")) != "none", node=backoff)
    is_safe = module.constant(keyword(call, "repeatable")) is not True  # it looks at what the error shows was sent
    return RetryPolicy("forbear", _read_limits(module, call, 5), waits, errors, is_safe)


def _read_opnieuw(module: Module, call: ast.Call) -> RetryPolicy:
    node = find_argument(call, 0, "retry_on_exceptions")
    errors = RetriedErrors(error_names(module, node) if node is not None else None, node)
    return RetryPolicy("opnieuw", Limits(None, deadline=True), Waits("growing", jitter=True), errors)


def _read_retrying(module: Module, call: ast.Call) -> RetryPolicy:
    limits, waits, errors = Limits(), Waits(), RetriedErrors()
    if keyword(call, "stop", "stop_func") is None:
        attempts = _count(module, keyword(call, "stop_max_attempt_number"))
        limits = Limits(attempts, keyword(call, "stop_max_delay") is not None)
    if keyword(call, "wait", "wait_func") is None:
        growing = keyword(call, "wait_exponential_multiplier", "wait_incrementing_increment")
        node = keyword(call, "wait_fixed", "wait_random_max") or growing
        jitter = keyword(call, "wait_jitter_max", "wait_random_max") is not None
        longest = None
        if keyword(call, "wait_exponential_multiplier") is not None and keyword(call, "wait_exponential_max") is None:
            longest = grows_to(seconds(module.constant(growing), 1000) / 1000, 2, limits.attempts)
        first, cap = (module.constant(part) for part in (growing, keyword(call, "wait_exponential_max")))
        kind = choose_kind(first, None, cap) if growing is not None else "fixed" if node is not None else "none"
        waits = Waits(kind, jitter, longest, node)
    if keyword(call, "retry_on_exception") is None and keyword(call, "retry_on_result") is None:
        errors = RetriedErrors(ALL, call)
    elif (chosen := keyword(call, "retry_on_exception")) is not None:
        errors = RetriedErrors(names_of_predicate(module, chosen), chosen, has_predicate=True)
    return RetryPolicy("retrying", limits, waits, errors)


def _read_retry(module: Module, call: ast.Call) -> RetryPolicy:
    options = dict(zip(("exceptions", "tries", "delay", "max_delay", "backoff", "jitter"), call.args, strict=False))
    options |= {option.arg: option.value for option in call.keywords if option.arg}
    names = error_names(module, options["exceptions"]) if "exceptions" in options else ALL
    tries = module.constant(options["tries"]) if "tries" in options else -1
    attempts = (math.inf if tries < 0 else float(tries)) if isinstance(tries, int) else None
    first, factor, jitter = (module.constant(options.get(name)) for name in ("delay", "backoff", "jitter"))
    cap = module.constant(options.get("max_delay"))
    kind = "none" if "delay" not in options or first == 0 else choose_kind(first, factor, cap)
    kind = "fixed" if kind != "none" and "backoff" not in options else kind
    longest = None if "max_delay" in options else grows_to(seconds(first, 1), seconds(factor, 1), attempts)
    waits = Waits(kind, "jitter" in options and jitter != 0, longest, call)
    return RetryPolicy(
        "retry", Limits(attempts, deadline=False), waits, RetriedErrors(names, options.get("exceptions", call))
    )


Parser = Callable[[Module, ast.Call], RetryPolicy]
READERS: tuple[tuple[str, tuple[str, ...], Parser], ...] = (
    ("tenacity", ("retry", "Retrying", "AsyncRetrying"), _read_tenacity),
    ("backoff", ("on_exception", "on_predicate"), _read_backoff),
    ("stamina", ("retry", "retry_context", "RetryingCaller", "AsyncRetryingCaller"), _read_stamina),
    ("opnieuw", ("retry", "retry_async"), _read_opnieuw),
    ("retrying", ("retry", "Retrying"), _read_retrying),
    ("forbear", ("retry",), _read_forbear),
    ("retry", ("retry", "retry_call"), _read_retry),
    ("reretry", ("retry", "retry_call"), _read_retry),
)
