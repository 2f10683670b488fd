"""The retries of Celery's tasks: the options of the decorator, `acks_late`, and `self.retry(...)` in the body."""

import ast
import math
from collections.abc import Iterator

from forbear_audit.libraries.errors import error_names
from forbear_audit.libraries.queues import Task
from forbear_audit.reading.modules import Module, sets_constant
from forbear_audit.reading.retry_use import Limits, RepeatedCode, RetriedErrors, RetryPolicy, Waits
from forbear_audit.reading.scopes import Function, add_options, call_like, from_package, keyword
from forbear_audit.reading.syntax import calls_in, find_all

_OPTIONS = ("autoretry_for", "retry_backoff", "retry_jitter", "max_retries", "acks_late")


def read_task(module: Module, function: Function, decorator: ast.expr, dotted: str) -> Iterator[Task]:
    """Yield the retries of a task of Celery; none if `decorator` makes no task."""
    name = dotted.rpartition(".")[2]
    call = decorator if isinstance(decorator, ast.Call) else None
    made = call.func if call is not None else decorator
    app = module.value(made.value) if isinstance(made, ast.Attribute) else None
    of_app = name == "task" and isinstance(app, ast.Call) and from_package(module.name_of(app.func), "celery")
    if not of_app and not from_package(dotted, "celery", "shared_task"):
        return
    options = call if call is not None else call_like(made, made)
    place, base = module.definition(keyword(options, "base") or made)
    if isinstance(base, ast.ClassDef):
        options = add_options(options, _list_options(module, place, base))
    late = False  # whether the settings of the app let its tasks be executed again by another worker
    if of_app and app is not None and isinstance(made, ast.Attribute):
        home = module.home_of(app)
        names = [one for (_, one), values in home.assigned.items() if app in values] or [module.local_name(made.value)]
        late = any(sets_constant(home, f".{one.lstrip('.')}.conf.task_acks_late", value=True) for one in names)
    policy = _read_options(module, options, late=late)
    if policy is not None:
        yield policy, options, RepeatedCode(function.body, function)
    for handler in find_all(function.body, ast.ExceptHandler):
        for task in _read_handler(module, function, handler, call):
            if task[0].limits.attempts != 1:
                yield task


def read_class(module: Module, owner: ast.ClassDef) -> Iterator[Task]:
    """Yield the retry of a task that is a class: its attributes are the options, and `run` is repeated."""
    run = module.methods.get((owner, "run"))
    bases = [home.name_of(base) for home, each in module.list_bases(owner) for base in each.bases] if run else []
    if run is not None and any(from_package(base, "celery", "Task") for base in bases):
        call = call_like(owner.bases[0], owner.bases[0], *_list_options(module, module, owner))
        policy = _read_options(module, call)
        if policy is not None:
            yield policy, call, RepeatedCode(run.body, run)


def _list_options(module: Module, place: Module, owner: ast.ClassDef) -> list[ast.keyword]:
    """Return the options that the attributes of a class set, or of one that it is made of."""
    found = [(name, *place.find_member(owner, name)) for name in _OPTIONS]
    return [ast.keyword(name, module.adopt(home, value)) for name, home, value in found if isinstance(value, ast.expr)]


def _read_options(module: Module, call: ast.Call, *, late: bool = False) -> RetryPolicy | None:
    retried, option = keyword(call, "autoretry_for"), keyword(call, "acks_late")
    if retried is None:
        if not (late if option is None else module.constant(option) is True):
            return None
        # another worker executes it again
        return RetryPolicy("celery", errors=RetriedErrors(("celery.WorkerLost",), has_predicate=True))
    grows = module.constant(keyword(call, "retry_backoff")) if keyword(call, "retry_backoff") is not None else False
    jitter = keyword(call, "retry_jitter")
    has_jitter = jitter is None or module.constant(jitter) is not False
    waits = Waits("unknown" if grows is ... else "growing" if grows else "fixed", has_jitter)
    more = ast.Call(call.func, [], [ast.keyword(None, kept)] if (kept := keyword(call, "retry_kwargs")) else [])
    kept_limit = keyword(module.whole(module.locate(more, call)), "max_retries")
    limits = _read_limits(module, kept_limit or keyword(call, "max_retries"))
    return RetryPolicy("celery", limits, waits, RetriedErrors(error_names(module, retried), retried))


def _read_limits(module: Module, most: ast.expr | None) -> Limits:
    """Return the limits by `max_retries`: None is no limit, 0 is off, and without it there are four attempts."""
    limit = module.constant(most) if most is not None else ...
    if limit is None:
        return Limits(math.inf, deadline=False)
    return Limits(limit + 1 if isinstance(limit, int) else None)


def _read_handler(
    module: Module, function: Function, handler: ast.ExceptHandler, options: ast.Call | None
) -> Iterator[Task]:
    """Yield the retry that an error handler of a task makes by `self.retry(...)`."""
    for call in calls_in(handler.body):
        if ast.unparse(call.func) not in ("self.retry", f"{function.name}.retry"):
            continue
        names = ("BaseException",) if handler.type is None else error_names(module, handler.type)
        attempt = module.parents.get(handler)
        most = keyword(call, "max_retries") or (keyword(options, "max_retries") if options is not None else None)
        errors = RetriedErrors(names, handler.type or handler)
        policy = RetryPolicy("celery", _read_limits(module, most), _read_countdown(module, call), errors)
        before = [s for s in function.body if s.lineno < attempt.lineno] if isinstance(attempt, ast.Try) else []
        yield policy, call, RepeatedCode([*before, *attempt.body] if isinstance(attempt, ast.Try) else [], function)


def _read_countdown(module: Module, call: ast.Call) -> Waits:
    countdown = keyword(call, "countdown")
    if countdown is None:
        return Waits("fixed")
    text = ast.unparse(countdown)
    if "retries" in text:
        return Waits("growing", any(word in text for word in ("random", "jitter", "uniform")), node=countdown)
    return Waits("fixed" if module.constant(countdown) is not ... else "unknown", node=countdown)
