"""The retries of Celery's tasks: the options of the decorator, `acks_late`, and `self.retry(...)` in the body."""

import ast
import math
from collections.abc import Iterator

from forbear_audit.libraries.decorators import error_names
from forbear_audit.reading.modules import Function, Module, from_package, inside, keyword
from forbear_audit.reading.retry_use import RetryUse


def read_task(module: Module, function: Function, decorator: ast.expr, dotted: str) -> Iterator[RetryUse]:
    """Yield the retries of a task of Celery; none if `decorator` makes no task."""
    name = dotted.rpartition(".")[2]
    call = decorator if isinstance(decorator, ast.Call) else None
    made = call.func if call is not None else decorator
    app = module.value(made.value) if isinstance(made, ast.Attribute) else None
    of_app = name == "task" and isinstance(app, ast.Call) and from_package(module.dotted(app.func), "celery")
    if not of_app and not from_package(dotted, "celery", "shared_task"):
        return
    if call is not None:
        use = _by_options(module, call)
        if use is not None:
            use.function, use.region = function, function.body
            yield use
    for node in inside(function.body):
        if isinstance(node, ast.ExceptHandler):
            for use in _by_hand(module, function, node):
                limit = keyword(use.node, "max_retries") if isinstance(use.node, ast.Call) else None
                _limit(module, limit or (keyword(call, "max_retries") if call is not None else None), use)
                if use.attempts != 1:
                    yield use


def _by_options(module: Module, call: ast.Call) -> RetryUse | None:
    """Return the retry by the options of a task, None without one."""
    retried, late = keyword(call, "autoretry_for"), keyword(call, "acks_late")
    use = RetryUse("celery", call)
    if retried is None:
        if late is None or module.constant(late) is not True:
            return None
        use.errors, use.has_predicate = ("celery.WorkerLost",), True  # another worker executes it again
        return use
    use.error_node, use.errors = retried, error_names(module, retried)
    _limit(module, keyword(call, "max_retries"), use)
    grows = module.constant(keyword(call, "retry_backoff")) if keyword(call, "retry_backoff") is not None else False
    use.wait = "unknown" if grows is ... else "growing" if grows else "fixed"
    jitter = keyword(call, "retry_jitter")
    use.jitter = jitter is None or module.constant(jitter) is not False
    return use


def _limit(module: Module, most: ast.expr | None, use: RetryUse) -> None:
    """Set the limit of attempts by `max_retries`: None is no limit, 0 is off, and without it there are four."""
    if most is None:
        return
    limit = module.constant(most)
    if limit is None:
        use.attempts, use.deadline = math.inf, False
    elif isinstance(limit, int):
        use.attempts = limit + 1


def _by_hand(module: Module, function: Function, handler: ast.ExceptHandler) -> Iterator[RetryUse]:
    """Yield the retry that an error handler of a task makes by `self.retry(...)`."""
    for call in (node for node in inside(handler.body) if isinstance(node, ast.Call)):
        if not (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "retry"
            and ast.unparse(call.func.value) == "self"
        ):
            continue
        use = RetryUse("celery", call, function=function, error_node=handler.type or handler)
        use.errors = ("BaseException",) if handler.type is None else error_names(module, handler.type)
        attempt = module.parents.get(handler)
        use.region = attempt.body if isinstance(attempt, ast.Try) else []
        countdown = keyword(call, "countdown")
        use.wait_node = countdown
        if countdown is None:
            use.wait = "fixed"
        elif "retries" in ast.unparse(countdown):
            use.wait = "growing"
            use.jitter = any(word in ast.unparse(countdown) for word in ("random", "jitter", "uniform"))
        elif module.constant(countdown) is not ...:
            use.wait = "fixed"
        yield use
