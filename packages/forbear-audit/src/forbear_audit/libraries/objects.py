"""The retries that are objects or options: urllib3, httpx-retries, aiohttp-retry, google-api-core, redis-py, gRPC."""

import ast
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from forbear_audit.libraries.errors import error_names, join_names, names_of_predicate
from forbear_audit.libraries.http import CodeRequest, are_harmless, requests_of_session
from forbear_audit.reading.modules import Module
from forbear_audit.reading.retry_use import Flaw, Limits, RetriedErrors, RetryPolicy, Wait, Waits
from forbear_audit.reading.scopes import find_argument, keyword

TRANSIENT = RetriedErrors(("forbear.transient",))
"""The errors of a policy that repeats lost connections and failures of servers, which it does not name."""

_REFUSALS = frozenset({408, 425, 429})  # statuses of 4xx that another attempt may cure
_RANDOM = ("FullJitterBackoff", "EqualJitterBackoff", "DecorrelatedJitterBackoff", "ExponentialWithJitterBackoff")
_HOPELESS = frozenset({
    "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED",
    "FAILED_PRECONDITION", "OUT_OF_RANGE", "DATA_LOSS", "OK",
})  # fmt: skip


def _read_urllib3(module: Module, call: ast.Call, library: str) -> RetryPolicy | None:
    total = find_argument(call, 0, "total")
    value = module.constant(total) if total is not None else 10
    off = [option for option in ("connect", "read", "status") if _is_off(module, keyword(call, option))]
    is_idle = {"connect", "read"} <= {*off} and ("status" in off or keyword(call, "status_forcelist") is None)
    if value in (0, False) or is_idle:
        return None  # perhaps it follows redirects
    limited = keyword(call, "connect", "read", "status", "other") is not None
    limits = Limits(math.inf if value is None and not limited else None, deadline=False)
    factor = module.constant(keyword(call, "backoff_factor")) if keyword(call, "backoff_factor") is not None else 0
    jitter = keyword(call, "backoff_jitter")
    has_jitter = jitter is not None if library == "urllib3" else module.constant(jitter) not in (0, 0.0)
    flaws = [*_find_unsafe_methods(module, call), *_find_hopeless_statuses(module, keyword(call, "status_forcelist"))]
    header = keyword(call, "respect_retry_after_header")
    if header is not None and module.constant(header) is False:
        flaws.append(("RETRY-AFTER", header, "the server's Retry-After is ignored"))
    waits = Waits("none" if factor in (0, 0.0) else "growing", has_jitter)
    return RetryPolicy(library, limits, waits, flaws=tuple(flaws))


def _is_off(module: Module, limit: ast.expr | None) -> bool:
    return limit is not None and module.constant(limit) in (0, False)


def _find_unsafe_methods(module: Module, call: ast.Call) -> list[Flaw]:
    node = keyword(call, "allowed_methods", "method_whitelist")
    if node is None:
        return []
    names = module.items(node)
    if names is None and module.constant(node) not in (None, False):
        parts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
        is_union = not parts or any(isinstance(part, str) for part in parts)
        names = tuple(parts) if is_union else None  # `methods or None`
    unsafe = [n for n in names if n in ("POST", "PATCH")] if names is not None else ["POST", "PATCH"]
    only_connects = _is_off(module, keyword(call, "read")) and keyword(call, "status_forcelist") is None
    if not unsafe or only_connects or are_harmless(module, _sent(module, call)):
        return []
    return [("UNSAFE", node, f"{' and '.join(map(str, unsafe))} requests are repeated after a lost response")]


def _sent(module: Module, retry: ast.Call) -> list[CodeRequest]:
    """Return the requests of this module that go through the session on which a policy is mounted."""
    place = (retry.lineno, retry.col_offset)
    for mount in module.calls:
        if not (isinstance(mount.func, ast.Attribute) and mount.func.attr == "mount" and len(mount.args) > 1):
            continue
        adapter = module.value(mount.args[1])
        policy = module.value(keyword(adapter, "max_retries")) if isinstance(adapter, ast.Call) else None
        if isinstance(policy, ast.Call) and (policy.lineno, policy.col_offset) == place:
            return requests_of_session(module, mount.func.value)
    return []


def _find_hopeless_statuses(module: Module, node: ast.expr | None) -> list[Flaw]:
    statuses = module.items(node) or ()
    wrong = [s for s in statuses if isinstance(s, int) and 400 <= s < 500 and s not in _REFUSALS]
    if not wrong or node is None:
        return []
    return [("WRONG-ERROR", node, f"another attempt does not cure status {', '.join(map(str, wrong))}")]


def _read_aiohttp_retry(module: Module, call: ast.Call, library: str) -> RetryPolicy:
    kind = module.name_of(call.func).rpartition(".")[2]
    waits = Waits("fixed" if kind == "RandomRetry" else "growing", kind in ("JitterRetry", "RandomRetry"))
    flaws = _find_hopeless_statuses(module, keyword(call, "statuses"))
    return RetryPolicy(library, Limits(deadline=False), waits, flaws=tuple(flaws))


def _read_google(module: Module, call: ast.Call, library: str) -> RetryPolicy:
    timeout = keyword(call, "timeout", "deadline")
    limits = Limits(math.inf, timeout is None or module.constant(timeout) is not None)
    errors = TRANSIENT
    predicate = module.value(keyword(call, "predicate"))
    if isinstance(predicate, ast.Call) and module.name_of(predicate.func).endswith("if_exception_type"):
        errors = RetriedErrors(join_names([error_names(module, item) for item in predicate.args]), predicate)
    elif predicate is not None and not module.name_of(predicate).endswith("if_transient_error"):
        names = names_of_predicate(module, predicate)
        errors = RetriedErrors(names, predicate, has_predicate=True)
    return RetryPolicy(library, limits, Waits("growing", jitter=True), errors)


def _read_redis(module: Module, call: ast.Call, library: str) -> RetryPolicy | None:
    value = module.constant(find_argument(call, 1, "retries"))
    if value == 0:
        return None
    attempts = math.inf if isinstance(value, int) and value < 0 else value + 1 if isinstance(value, int) else None
    backoff = module.value(find_argument(call, 0, "backoff"))
    name = module.name_of(backoff.func if isinstance(backoff, ast.Call) else backoff).rpartition(".")[2]
    kinds: dict[str, Wait] = {"NoBackoff": "none", "ConstantBackoff": "fixed"}
    waits = Waits(node=backoff)
    if name.endswith("Backoff"):
        waits = Waits(kinds.get(name, "growing"), name in _RANDOM, node=backoff)
    return RetryPolicy(library, Limits(attempts, False if attempts == math.inf else None), waits, TRANSIENT)


def read_service_configs(module: Module) -> Iterator[tuple[RetryPolicy, ast.AST]]:
    """Yield the retry policies of gRPC in a module, with their nodes: in dictionaries and in texts of JSON."""
    around = {id(module.parents[text]): module.parents[text] for text in module.configs}  # each once: it may be long
    dicts = [parent for parent in around.values() if isinstance(parent, ast.Dict)]
    values = {id(key): value for one in dicts for key, value in zip(one.keys, one.values, strict=True)}
    for text in module.configs:
        if id(text) in values:
            parent = module.parents[text]
            yield _read_grpc(parent, module.constant(values[id(text)])), parent
            continue
        yield from ((_read_grpc(text, method["retryPolicy"]), text) for method in _list_retried(text.value))


def read_service_config(module: Module, config: ast.expr) -> tuple[RetryPolicy, frozenset[tuple[str, str]]] | None:
    """Return the retry of a service config, with the services and RPCs that it is for; None if it repeats nothing."""
    made = module.value(config)
    retried = _list_retried(module.constant(made.args[0] if isinstance(made, ast.Call) and made.args else made))
    named = [cast("dict[str, object]", name) for each in retried for name in each.get("name", ())]
    names = {(str(one.get("service", "")).rpartition(".")[2], str(one.get("method", ""))) for one in named}
    return (_read_grpc(config, retried[0]["retryPolicy"]), frozenset(names)) if retried else None


def _list_retried(config: object) -> list[dict[str, Any]]:
    """Return the parts of a service config, or of its text in JSON, that have a retry policy."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        whole: Any = json.loads(config) if isinstance(config, str) else config
        return [each for each in whole["methodConfig"] if "retryPolicy" in each]
    return []


def _read_grpc(node: ast.AST, policy: object) -> RetryPolicy:
    if not isinstance(policy, dict):
        return RetryPolicy("grpc", waits=Waits(jitter=True))
    options = cast("dict[object, object]", policy)
    codes = options.get("retryableStatusCodes")
    listed = cast("Sequence[object]", codes) if isinstance(codes, (list, tuple)) else ()
    wrong = [c for c in listed if isinstance(c, str) and c in _HOPELESS]
    message = f"another attempt does not cure {', '.join(wrong)}"
    waits = Waits("fixed" if options.get("backoffMultiplier") == 1 else "growing", jitter=True)
    flaws = (("WRONG-ERROR", node, message),) if wrong else ()
    return RetryPolicy("grpc", waits=waits, errors=TRANSIENT, flaws=flaws)


Parser = Callable[[Module, ast.Call, str], RetryPolicy | None]
_GOOGLE = ("Retry", "AsyncRetry", "StreamingRetry", "AsyncStreamingRetry")
_AIOHTTP = ("ExponentialRetry", "RandomRetry", "FibonacciRetry", "JitterRetry")
READERS: tuple[tuple[str, tuple[str, ...], str, Parser], ...] = (
    ("urllib3", ("Retry",), "urllib3", _read_urllib3),
    ("requests", ("Retry",), "urllib3", _read_urllib3),
    ("httpx_retries", ("Retry",), "httpx-retries", _read_urllib3),
    ("aiohttp_retry", _AIOHTTP, "aiohttp-retry", _read_aiohttp_retry),
    ("google.api_core", _GOOGLE, "google-api-core", _read_google),
    ("redis", ("Retry",), "redis", _read_redis),
    ("valkey", ("Retry",), "redis", _read_redis),
)
