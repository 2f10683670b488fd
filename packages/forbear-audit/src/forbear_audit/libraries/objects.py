"""The retries that are objects or options: urllib3, httpx-retries, aiohttp-retry, google-api-core, redis-py, gRPC."""

import ast
import json
import math
from collections.abc import Callable, Sequence
from typing import cast

from forbear_audit.libraries.decorators import error_names
from forbear_audit.libraries.http import CodeRequest, only_harmless, sent_by
from forbear_audit.reading.modules import Module, from_package, has_unknown, keyword
from forbear_audit.reading.retry_use import RetryUse

_REFUSALS = frozenset({408, 425, 429})  # statuses of 4xx that another attempt may cure
_RANDOM = ("FullJitterBackoff", "EqualJitterBackoff", "DecorrelatedJitterBackoff", "ExponentialWithJitterBackoff")
_HOPELESS = frozenset({
    "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "UNAUTHENTICATED", "UNIMPLEMENTED",
    "FAILED_PRECONDITION", "OUT_OF_RANGE", "DATA_LOSS", "OK",
})  # fmt: skip


def read(module: Module, call: ast.Call, dotted: str) -> RetryUse | None:
    """Return the retry that a call of the function or class `dotted` makes, None if it makes none."""
    for package, names, parse in _READERS:
        if from_package(dotted, package, *names):
            use = RetryUse(_SAME.get(package, package), call)
            return None if has_unknown(call) else parse(module, call, use)
    return None


def _urllib3(module: Module, call: ast.Call, use: RetryUse) -> RetryUse | None:
    total = keyword(call, "total") or (call.args[0] if call.args else None)
    value = module.constant(total) if total is not None else 10
    if value in (0, False):
        return None
    if _only_redirects(module, call):
        return None
    limited = keyword(call, "connect", "read", "status", "other") is not None
    use.attempts = math.inf if value is None and not limited else None
    use.deadline = False
    factor = module.constant(keyword(call, "backoff_factor")) if keyword(call, "backoff_factor") is not None else 0
    use.wait = "none" if factor in (0, 0.0) else "growing"
    if use.library == "urllib3":
        use.jitter = keyword(call, "backoff_jitter") is not None
    else:
        use.jitter = module.constant(keyword(call, "backoff_jitter")) not in (0, 0.0)
    _methods(module, call, use)
    _statuses(module, keyword(call, "status_forcelist"), use)
    header = keyword(call, "respect_retry_after_header")
    if header is not None and module.constant(header) is False:
        use.flaws.append(("RETRY-AFTER", header, "the server's Retry-After is ignored"))
    return use


def _only_redirects(module: Module, call: ast.Call) -> bool:
    """Return whether a policy of urllib3 repeats nothing after errors and statuses: it only follows redirects."""
    off = [option for option in ("connect", "read", "status") if _is_off(module, keyword(call, option))]
    return {"connect", "read"} <= set(off) and ("status" in off or keyword(call, "status_forcelist") is None)


def _is_off(module: Module, limit: ast.expr | None) -> bool:
    return limit is not None and module.constant(limit) in (0, False)


def _methods(module: Module, call: ast.Call, use: RetryUse) -> None:
    node = keyword(call, "allowed_methods", "method_whitelist")
    if node is None:
        return
    names = module.items(node)
    if names is None and module.constant(node) not in (None, False):
        return
    unsafe = [n for n in names if n in ("POST", "PATCH")] if names is not None else ["POST", "PATCH"]
    reads = keyword(call, "read")
    only_connects = (
        reads is not None and module.constant(reads) in (0, False) and keyword(call, "status_forcelist") is None
    )
    if unsafe and not only_connects and not only_harmless(module, _sent(module, call)):
        which = " and ".join(map(str, unsafe))
        use.flaws.append(("UNSAFE", node, f"{which} requests are repeated after a lost response"))


def _sent(module: Module, retry: ast.Call) -> list[CodeRequest]:
    """Return the requests of this module that go through the session on which a policy is mounted."""
    place = (retry.lineno, retry.col_offset)
    for mount in module.calls:
        if not (isinstance(mount.func, ast.Attribute) and mount.func.attr == "mount" and len(mount.args) > 1):
            continue
        adapter = module.value(mount.args[1])
        policy = module.value(keyword(adapter, "max_retries")) if isinstance(adapter, ast.Call) else None
        if isinstance(policy, ast.Call) and (policy.lineno, policy.col_offset) == place:
            return sent_by(module, mount.func.value)
    return []


def _statuses(module: Module, node: ast.expr | None, use: RetryUse) -> None:
    statuses = module.items(node)
    if statuses is not None:
        wrong = [s for s in statuses if isinstance(s, int) and 400 <= s < 500 and s not in _REFUSALS]
        if wrong and node is not None:
            use.flaws.append(
                ("WRONG-ERROR", node, f"another attempt does not cure status {', '.join(map(str, wrong))}")
            )


def _aiohttp_retry(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    kind = module.dotted(call.func).rpartition(".")[2]
    use.deadline = False
    use.wait = "fixed" if kind == "RandomRetry" else "growing"
    use.jitter = kind in ("JitterRetry", "RandomRetry")
    _statuses(module, keyword(call, "statuses"), use)
    return use


def _google(module: Module, call: ast.Call, use: RetryUse) -> RetryUse:
    timeout = keyword(call, "timeout", "deadline")
    use.attempts = math.inf
    use.deadline = timeout is None or module.constant(timeout) is not None
    use.wait, use.jitter = "growing", True
    predicate = module.value(keyword(call, "predicate"))
    if isinstance(predicate, ast.Call) and module.dotted(predicate.func).endswith("if_exception_type"):
        parts = [error_names(module, item) for item in predicate.args]
        use.error_node = predicate
        use.errors = None if None in parts else tuple(name for part in parts for name in part or ())
    return use


def _redis(module: Module, call: ast.Call, use: RetryUse) -> RetryUse | None:
    retries = keyword(call, "retries") or (call.args[1] if len(call.args) > 1 else None)
    value = module.constant(retries)
    if value == 0:
        return None
    use.attempts = math.inf if isinstance(value, int) and value < 0 else value + 1 if isinstance(value, int) else None
    use.deadline = False if use.attempts == math.inf else None
    backoff = module.value(keyword(call, "backoff") or (call.args[0] if call.args else None))
    kind = module.dotted(backoff.func if isinstance(backoff, ast.Call) else backoff).rpartition(".")[2]
    use.wait_node = backoff
    use.wait = (
        "none"
        if kind == "NoBackoff"
        else "fixed"
        if kind == "ConstantBackoff"
        else "growing"
        if kind.endswith("Backoff")
        else "unknown"
    )
    use.jitter = kind in _RANDOM if kind.endswith("Backoff") else None
    return use


def service_configs(module: Module) -> list[RetryUse]:
    """Return the retry policies of gRPC in the module: those in dictionaries and in texts of JSON."""
    uses: list[RetryUse] = []
    around = {id(module.parents[text]): module.parents[text] for text in module.configs}  # each once: it may be long
    dicts = [parent for parent in around.values() if isinstance(parent, ast.Dict)]
    values = {id(key): value for one in dicts for key, value in zip(one.keys, one.values, strict=True)}
    for text in module.configs:
        if id(text) in values:
            uses.append(_grpc(module.parents[text], module.constant(values[id(text)])))
            continue
        try:
            methods = json.loads(str(text.value))["methodConfig"]
            uses.extend(_grpc(text, method["retryPolicy"]) for method in methods if "retryPolicy" in method)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return uses


def _grpc(node: ast.AST, policy: object) -> RetryUse:
    use = RetryUse("grpc", node, jitter=True)
    if isinstance(policy, dict):
        options = cast("dict[object, object]", policy)
        codes = options.get("retryableStatusCodes")
        listed = cast("Sequence[object]", codes) if isinstance(codes, (list, tuple)) else ()
        wrong = [c for c in listed if isinstance(c, str) and c in _HOPELESS]
        if wrong:
            use.flaws.append(("WRONG-ERROR", node, f"another attempt does not cure {', '.join(wrong)}"))
        use.wait = "fixed" if options.get("backoffMultiplier") == 1 else "growing"
    return use


_SAME = {
    "requests": "urllib3",
    "valkey": "redis",
    "google.api_core": "google-api-core",
    "httpx_retries": "httpx-retries",
    "aiohttp_retry": "aiohttp-retry",
}

Parser = Callable[[Module, ast.Call, RetryUse], RetryUse | None]
_READERS: tuple[tuple[str, tuple[str, ...], Parser], ...] = (
    ("urllib3", ("Retry",), _urllib3),
    ("requests", ("Retry",), _urllib3),
    ("httpx_retries", ("Retry",), _urllib3),
    ("aiohttp_retry", ("ExponentialRetry", "RandomRetry", "FibonacciRetry", "JitterRetry"), _aiohttp_retry),
    ("google.api_core", ("Retry", "AsyncRetry", "StreamingRetry", "AsyncStreamingRetry"), _google),
    ("redis", ("Retry",), _redis),
    ("valkey", ("Retry",), _redis),
)
