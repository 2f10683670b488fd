"""The decorators: tenacity, backoff, stamina, opnieuw, retrying and forbear."""

import ast
import math
from collections.abc import Callable

from forbear_audit.reading.modules import Module, from_package, has_unknown, keyword
from forbear_audit.reading.retry_use import RetryUse, grows_to, seconds

ALL = ("Exception",)
_EXPONENTIAL = ("wait_exponential", "wait_random_exponential", "wait_full_jitter", "wait_exponential_jitter")
"""The waits of tenacity that grow without a cap if they have no `max`. All but the first have jitter."""


def read(module: Module, call: ast.Call | ast.expr, dotted: str) -> RetryUse | None:
    """Return the retry that a call of the function `dotted` makes, None if it is no retry of these libraries.

    `call` is a plain name where a decorator is used without a call.
    """
    for package, names, parse in _READERS:
        if from_package(dotted, package, *names):
            if not isinstance(call, ast.Call):
                call = ast.copy_location(ast.Call(func=call, args=[], keywords=[]), call)
            use = RetryUse(package, call)
            return use if has_unknown(call) else parse(module, call, use)
    return None


def error_names(module: Module, expr: ast.expr | None) -> tuple[str, ...] | None:
    """Return the dotted names of an error type or of a tuple of them, None if they cannot be read."""
    expr = module.value(expr) if not (isinstance(expr, ast.Name) and module.dotted(expr).startswith(".")) else expr
    if isinstance(expr, (ast.Tuple, ast.List, ast.Set)):
        names = [module.dotted(item) for item in expr.elts]
        return tuple(names) if all(names) else None
    name = module.dotted(expr)
    return (name,) if name else None


def _tenacity(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    _tenacity_stop(module, keyword(call, "stop"), use)
    _tenacity_wait(module, keyword(call, "wait"), use)
    condition = module.value(keyword(call, "retry"))
    use.error_node = condition or call
    names = _last_names(module, condition)
    if condition is None:
        use.errors = ALL
    elif isinstance(condition, ast.Call) and names and names[0] == "retry_if_exception_type":
        use.errors = error_names(module, condition.args[0]) if condition.args else ALL
    elif names and set(names) <= {"retry_if_exception_type", "retry_if_result", "retry_if_not_result"}:
        types = [
            c
            for c in ast.walk(condition)
            if isinstance(c, ast.Call) and module.dotted(c.func).endswith("retry_if_exception_type")
        ]
        parts = [error_names(module, c.args[0]) if c.args else ALL for c in types]
        use.errors = None if None in parts else tuple(name for part in parts for name in part or ())
    return use


def _last_names(module: Module, expr: ast.expr | None) -> list[str]:
    """Return the last part of the names of all of tenacity's functions in an expression."""
    nodes = ast.walk(expr) if expr is not None else ()
    dotted = [module.dotted(node) for node in nodes if isinstance(node, (ast.Name, ast.Attribute))]
    return [name.rpartition(".")[2] for name in dotted if from_package(name, "tenacity") and "_" in name]


def _tenacity_stop(module: Module, stop: ast.expr | None, use: RetryUse) -> None:
    stop = module.value(stop)
    if stop is None or module.dotted(stop).endswith("stop_never"):
        use.attempts, use.deadline = math.inf, False
        return
    names = _last_names(module, stop)
    if not names or set(names) - {
        "stop_after_attempt",
        "stop_after_delay",
        "stop_before_delay",
        "stop_any",
        "stop_all",
    }:
        return  # an object of the user's own
    timed = "stop_after_delay" in names or "stop_before_delay" in names
    counts = [
        c for c in ast.walk(stop) if isinstance(c, ast.Call) and module.dotted(c.func).endswith("stop_after_attempt")
    ]
    both = "stop_all" in names or any(isinstance(node, ast.BitAnd) for node in ast.walk(stop))
    if not counts and not timed:
        return  # made of names that cannot be followed
    use.deadline = timed and not (both and counts)
    use.attempts = math.inf if not counts else None
    if counts and counts[0].args:
        value = module.constant(counts[0].args[0])
        use.attempts = value if isinstance(value, int) else None


def _tenacity_wait(module: Module, wait: ast.expr | None, use: RetryUse) -> None:
    wait = module.value(wait)
    use.wait_node = wait
    names = set(_last_names(module, wait))
    if wait is None or names == {"wait_none"}:
        use.wait = "none"
    elif names & {*_EXPONENTIAL, "wait_incrementing"}:
        use.wait, use.jitter = "growing", bool(names & {*_EXPONENTIAL[1:], "wait_random"})
        calls = [c for c in ast.walk(wait) if isinstance(c, ast.Call)]
        growing = [c for c in calls if module.dotted(c.func).rpartition(".")[2] in _EXPONENTIAL]
        if growing and keyword(growing[0], "max") is None and len(growing[0].args) < 2:
            first = keyword(growing[0], "multiplier", "initial") or (growing[0].args[0] if growing[0].args else None)
            base = seconds(module.constant(keyword(growing[0], "exp_base")), 2)
            use.longest = grows_to(seconds(module.constant(first), 1), base, use.attempts)
    elif names & {"wait_fixed", "wait_random"} and "wait_chain" not in names:
        use.wait, use.jitter = "unknown" if _is_mostly_random(module, wait) else "fixed", "wait_random" in names


def _is_mostly_random(module: Module, wait: ast.expr) -> bool:
    """Return whether more than half of the longest wait of `wait_fixed` and `wait_random` is random."""
    fixed = spread = 0.0
    for call in (node for node in ast.walk(wait) if isinstance(node, ast.Call)):
        name = module.dotted(call.func).rpartition(".")[2]
        numbers = [seconds(module.constant(item), 0) for item in call.args]
        if name == "wait_fixed":
            fixed += numbers[0] if numbers else seconds(module.constant(keyword(call, "wait")), 0)
        elif name == "wait_random":
            least = numbers[0] if numbers else seconds(module.constant(keyword(call, "min")), 0)
            most = numbers[1] if len(numbers) > 1 else seconds(module.constant(keyword(call, "max")), 1)
            fixed, spread = fixed + least, spread + most - least
    return spread > fixed


def _backoff(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    on_exception = module.dotted(call.func).endswith("on_exception")
    tries, time = keyword(call, "max_tries"), keyword(call, "max_time")
    use.deadline = time is not None and module.constant(time) is not None
    value = module.constant(tries) if tries is not None else None
    use.attempts = math.inf if value is None else value if isinstance(value, int) else None
    generator = module.dotted(call.args[0] if call.args else keyword(call, "wait_gen")).rpartition(".")[2]
    use.wait_node = call.args[0] if call.args else call
    jitter = keyword(call, "jitter")
    use.jitter = jitter is None or module.constant(jitter) is not None
    if generator == "constant":
        use.wait = "fixed"
    elif generator in ("expo", "fibo"):
        use.wait = "growing"
        if keyword(call, "max_value") is None:
            base = seconds(module.constant(keyword(call, "base")), 2)
            use.longest = grows_to(
                seconds(module.constant(keyword(call, "factor")), 1),
                base if generator == "expo" else 1.62,
                use.attempts,
            )
    elif generator == "runtime":
        use.reads_header = True
    if on_exception:
        use.error_node = call.args[1] if len(call.args) > 1 else keyword(call, "exception")
        use.errors = error_names(module, use.error_node) if isinstance(use.error_node, ast.expr) else None
        use.has_predicate = keyword(call, "giveup") is not None
    return use


def _stamina(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    _attempts_and_timeout(module, call, use, 10)
    on = keyword(call, "on") or (call.args[0] if call.args else None)
    use.error_node, use.errors = on, _types_only(module, on)
    use.wait = "growing"
    use.jitter = module.constant(keyword(call, "wait_jitter")) not in (0, 0.0)
    return use


def _types_only(module: Module, on: ast.expr | None) -> tuple[str, ...] | None:
    """Return the error types of `on`, None if it may be a function."""
    names = error_names(module, on)
    return names if names is not None and all(n.rpartition(".")[2][:1].isupper() for n in names) else None


def _attempts_and_timeout(module: Module, call: ast.Call, use: RetryUse, default: int) -> None:
    attempts, timeout = keyword(call, "attempts"), keyword(call, "timeout")
    value = default if attempts is None else module.constant(attempts)
    use.attempts = math.inf if value is None else value if isinstance(value, int) else None
    use.deadline = timeout is None or module.constant(timeout) is not None


def _forbear(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    _attempts_and_timeout(module, call, use, 5)
    on = keyword(call, "on")
    expr = on or (ast.Tuple(elts=call.args, ctx=ast.Load()) if call.args else None)
    use.error_node = on or (call.args[0] if call.args else call)
    use.errors = _types_only(module, expr)
    if any(from_package(name, "forbear", "transient", "transaction") for name in error_names(module, expr) or ()):
        use.errors, use.has_predicate = ("forbear.transient",), True
    use.safe = module.constant(keyword(call, "repeatable")) is False
    use.wait, use.jitter = "growing", True
    backoff = module.value(keyword(call, "backoff"))
    if isinstance(backoff, ast.Call):
        use.wait_node = backoff
        if module.dotted(backoff.func).endswith("Constant"):
            use.wait = "fixed"
        use.jitter = module.constant(keyword(backoff, "jitter")) != "none"
    return use


def _opnieuw(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    use.deadline, use.attempts, use.wait, use.jitter = True, None, "growing", True
    use.error_node = keyword(call, "retry_on_exceptions") or (call.args[0] if call.args else None)
    use.errors = error_names(module, use.error_node) if isinstance(use.error_node, ast.expr) else None
    return use


def _retrying(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    if keyword(call, "stop", "stop_func") is None:
        number = keyword(call, "stop_max_attempt_number")
        value = module.constant(number) if number is not None else None
        use.attempts = math.inf if value is None else value if isinstance(value, int) else None
        use.deadline = keyword(call, "stop_max_delay") is not None
    growing = keyword(call, "wait_exponential_multiplier", "wait_incrementing_increment")
    if keyword(call, "wait", "wait_func") is None:
        use.wait_node = keyword(call, "wait_fixed", "wait_random_max") or growing
        use.jitter = keyword(call, "wait_jitter_max", "wait_random_max") is not None
        use.wait = "growing" if growing is not None else "fixed" if use.wait_node is not None else "none"
        if keyword(call, "wait_exponential_multiplier") is not None and keyword(call, "wait_exponential_max") is None:
            use.longest = grows_to(seconds(module.constant(growing), 1000) / 1000, 2, use.attempts)
    if keyword(call, "retry_on_exception") is None and keyword(call, "retry_on_result") is None:
        use.errors, use.error_node = ALL, call
    return use


Parser = Callable[[Module, ast.Call, RetryUse], RetryUse]
_READERS: tuple[tuple[str, tuple[str, ...], Parser], ...] = (
    ("tenacity", ("retry", "Retrying", "AsyncRetrying"), _tenacity),
    ("backoff", ("on_exception", "on_predicate"), _backoff),
    ("stamina", ("retry", "retry_context"), _stamina),
    ("opnieuw", ("retry", "retry_async"), _opnieuw),
    ("retrying", ("retry", "Retrying"), _retrying),
    ("forbear", ("retry",), _forbear),
)
