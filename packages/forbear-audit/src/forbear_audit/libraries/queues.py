"""The retries of task queues besides Celery: Dramatiq, Huey, RQ, arq, Temporal, Prefect and Airflow."""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass

from forbear_audit.libraries.errors import TASK_FAILED
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import Limits, RepeatedCode, RetriedErrors, RetryPolicy, Waits
from forbear_audit.reading.scopes import Function, add_options, call_like, find_argument, from_package, keyword
from forbear_audit.reading.syntax import find_all, join_bodies

Task = tuple[RetryPolicy, ast.AST, RepeatedCode]
"""The policy of a task, its node, and what it repeats."""

_ERRORS = RetriedErrors(("celery.WorkerLost", TASK_FAILED), has_predicate=True)
"""A queue repeats a task after every error, and when its worker dies: that is what it is for."""


_ACTIVITIES = ("execute_activity", "start_activity", "execute_activity_method", "start_activity_method")
_ENQUEUES = ("enqueue", "enqueue_at", "enqueue_in", "enqueue_call")


@dataclass(frozen=True, slots=True)
class _Queue:
    """A decorator that makes a task: its option for retries with the default, and the option that lets waits grow."""

    package: str
    names: tuple[str, ...]
    option: str
    default: int | None
    grows: str | None = None


_QUEUES = (
    _Queue("dramatiq", ("actor",), "max_retries", 20, ""),
    _Queue("huey", ("task", "periodic_task"), "retries", 0),
    _Queue("prefect", ("task", "flow"), "retries", 0),
    _Queue("metaflow", ("retry",), "times", 3),
    _Queue("airflow", ("task",), "retries", 0, "retry_exponential_backoff"),
    _Queue("dagster", ("op", "asset", "multi_asset"), "retry_policy", 0),
    _Queue("temporalio.activity", ("defn",), "", None, ""),
)


def read_task(module: Module, function: Function, decorator: ast.expr, dotted: str) -> Iterator[Task]:
    """Yield the retry of a task of a queue; none if `decorator` makes no task."""
    call = decorator if isinstance(decorator, ast.Call) else None
    made = call.func if call is not None else decorator
    owner = module.value(made.value) if isinstance(made, ast.Attribute) else None
    maker = module.name_of(owner.func) if isinstance(owner, ast.Call) else ""
    name = dotted.rpartition(".")[2]
    known = [q for q in _QUEUES if name in q.names and any(from_package(one, q.package) for one in (dotted, maker))]
    policies = [_read_queue(module, queue, _with_defaults(module, queue, call, made)) for queue in known]
    policies += [read_rq(module, call)] if from_package(dotted, "rq", "job") and call is not None else []
    yield from ((policy, decorator, RepeatedCode(function.body, function)) for policy in policies if policy is not None)


def _read_queue(module: Module, queue: _Queue, call: ast.Call | None) -> RetryPolicy | None:
    option = keyword(call, queue.option) if call is not None and queue.option else None
    made = module.value(option)
    if queue.package == "dagster":
        return _read_dagster(module, made) if isinstance(made, ast.Call) else None
    count = queue.default if option is None else module.constant(option)
    if count == 0 or (call is not None and keyword(call, "max_age") is not None):
        return None
    endless = option is not None and count is None
    limits = Limits(math.inf if endless else count + 1 if isinstance(count, int) else None, False if endless else None)
    grows = queue.grows == "" or (call is not None and queue.grows and keyword(call, queue.grows) is not None)
    delays = keyword(call, "retry_delay_seconds") if call is not None else None
    kind = delays is not None and not isinstance(module.constant(delays), (int, float))
    return RetryPolicy(queue.package, limits, Waits("growing" if grows else "unknown" if kind else "fixed"), _ERRORS)


def _read_dagster(module: Module, made: ast.Call) -> RetryPolicy:
    most = keyword(made, "max_retries")
    count = 1 if most is None else module.constant(most)
    waits = Waits("fixed" if keyword(made, "backoff") is None else "growing")
    return RetryPolicy("dagster", Limits(count + 1 if isinstance(count, int) else None), waits, _ERRORS)


def _with_defaults(module: Module, queue: _Queue, call: ast.Call | None, made: ast.expr) -> ast.Call | None:
    """Return the decorator of a task of Airflow with the defaults of its DAG, any other as it is."""
    found = module.keep(_find_dag_defaults) if queue.package == "airflow" else []
    return add_options(call or call_like(made, made), found) if found else call


def _find_dag_defaults(module: Module) -> list[ast.keyword]:
    """Return the `default_args` of the only DAG of a module."""
    dags = [call for name in ("dag", "DAG") for call in module.calls_of(name)]
    given = next((found for call in dags if (found := keyword(call, "default_args")) is not None), None)
    if given is None:
        return []
    made = call_like(given, ast.Name("x"), ast.keyword(None, given))
    return [option for option in module.whole(made).keywords if option.arg]


def _read_operators(module: Module) -> Iterator[Task]:
    """Yield the retries of functions that operators of Airflow call."""
    queue = next(queue for queue in _QUEUES if queue.package == "airflow")
    for call in module.calls:
        given = keyword(call, "python_callable")
        if given is None or not from_package(module.name_of(call.func), "airflow"):
            continue
        policy = _read_queue(module, queue, _with_defaults(module, queue, call, call.func))
        home, function = module.resolve_call(call_like(call, given))
        if policy is not None and function is not None and home is module:
            yield policy, call, RepeatedCode(function.body, function)


def read_others(module: Module) -> Iterator[Task]:
    """Yield the retries of jobs of RQ, where they are enqueued, and of jobs of arq, where they raise `Retry`."""
    packages = module.packages
    if "airflow" in packages:
        yield from _read_operators(module)
    for call in module.calls if "temporalio" in packages else ():
        made = module.value(keyword(call, "retry_policy"))
        deadline = keyword(call, "schedule_to_close_timeout", "execution_timeout", "run_timeout") is not None
        if made is None and isinstance(call.func, ast.Attribute) and call.func.attr in _ACTIVITIES and not deadline:
            yield RetryPolicy("temporalio.activity", Limits(math.inf, deadline=False)), call, RepeatedCode()
        if isinstance(made, ast.Call) and from_package(module.name_of(made.func), "temporalio.common", "RetryPolicy"):
            most = keyword(made, "maximum_attempts")
            count = 0 if most is None else module.constant(most)
            limits = Limits(math.inf, deadline) if count == 0 else Limits()
            waits = Waits("fixed" if module.constant(keyword(made, "backoff_coefficient")) == 1 else "growing")
            yield RetryPolicy("temporalio.activity", limits, waits), call, RepeatedCode()
    for call in module.calls if "rq" in packages else ():
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ENQUEUES:
            policy = read_rq(module, call)
            given = [*call.args, *([named] if (named := keyword(call, "func", "f")) is not None else [])]
            for item in given if policy is not None else ():
                sent = call_like(call, item)
                home, function = module.resolve_call(sent)
                if policy is not None and function is not None:
                    code: list[ast.stmt] = [ast.copy_location(ast.Expr(sent), call)]
                    code = function.body if home is module else code  # what other modules define is called from here
                    yield policy, call, RepeatedCode(code, function if home is module else None, by_call=True)
    for function in module.functions if "arq" in packages else ():
        for attempt in find_all(function.body, ast.Try):
            for node in find_all(join_bodies(attempt.handlers), ast.Raise):
                made = node.exc.func if isinstance(node.exc, ast.Call) else None
                if from_package(module.name_of(made), "arq", "Retry"):
                    yield RetryPolicy("arq", errors=_ERRORS), node, RepeatedCode(attempt.body, function)


def read_rq(module: Module, call: ast.Call) -> RetryPolicy | None:
    """Return the policy by which RQ repeats a job, None if a call has none."""
    retry = module.value(keyword(call, "retry"))
    if not (isinstance(retry, ast.Call) and from_package(module.name_of(retry.func), "rq", "Retry")):
        return None
    most = module.constant(find_argument(retry, 0, "max"))
    interval = keyword(retry, "interval")
    waits = Waits("fixed" if interval is None or isinstance(module.constant(interval), int) else "unknown")
    return RetryPolicy("rq", Limits(most + 1 if isinstance(most, int) else None), waits, _ERRORS)
