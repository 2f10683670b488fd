"""The rows of docs/migrate.md about retrying, and about clients: urllib3, google-api-core and redis-py."""

import redis

from forbear_testkit.docs.pair import A, B, Google, Lasting, Pair, Twice

_R = "session.mount(url, {0})\nreturn session.get(url).status_code"
_R_BARE = "session.mount(url, HTTPAdapter(max_retries={0}))\nreturn session.get(url).status_code"
_R_NEW = "session.mount(url, RetryAdapter({0}))\nreturn session.get(url).status_code"
URLLIB3 = [
    Pair("max_retries=Retry(total=3", _R, _R, [503, 503, 200], "ocw"),
    Pair("backoff_factor", _R_BARE, _R_NEW, [503, 503, 503, 200], "ocw"),
    Pair(
        "allowed_methods",
        "session.mount(url, HTTPAdapter(max_retries={0}))\nreturn session.post(url).status_code",
        "session.mount(url, RetryAdapter({1}))\nreturn session.post(url).status_code",
        [503, 503, 200],
    ),
    Pair(
        "raise_on_status",
        _R_BARE,
        "session.mount(url, RetryAdapter(attempts=4))\nreturn session.get(url).status_code",
        [503],
    ),
    Pair(
        "respect_retry_after",
        "session.mount(url, HTTPAdapter(max_retries=Retry(total=3, status_forcelist=[503], {0})))\n"
        "return session.get(url).status_code",
        "session.mount(url, RetryAdapter(backoff=forbear.Constant(0)))\nreturn session.get(url).status_code",
        ["after", 200],
        "oc",
    ),
    Pair(
        "total=False",
        "session.mount(url, HTTPAdapter(max_retries={1}))\nreturn session.get(url).status_code",
        _R_NEW,
        [503],
    ),
]

_G = "return {0}(work)()"
GOOGLE = [
    Pair("A, B", _G, _G, [A(), B(), A(), "done"], "ocw"),
    Pair(
        "timeout=20",
        "try:\n    {0}(work)()\nexcept Exception as error:\n    return str(error.__cause__)",
        "try:\n    {0}(work)()\nexcept A as error:\n    return str(error)",
        Lasting,
        "ocw",
    ),
    Pair("Retry()", _G, _G, Google, "oc"),
    Pair("with_timeout", _G, _G, Lasting, "cw"),
    Pair(
        "Retry(predicate)", "return {0}(work)()", "return forbear.retry({0})(work)()", [A("lost"), ValueError("wrong")]
    ),
    Pair(
        "on_error",
        "seen = []\nlog = seen.append\nRetry(if_exception_type(A), {0})(work)()\nreturn len(seen)",
        "seen = []\nlog = seen.append\nforbear.retry(A, {0})(work)()\n"
        "return sum(isinstance(event, forbear.events.Failed) for event in seen)",
        Twice,
    ),
    Pair(
        "DEFAULT_RETRY",
        "from google.cloud.storage.retry import DEFAULT_RETRY\nbucket.reload(retry=DEFAULT_RETRY)\nreturn bucket.name",
        "{0}\nbucket.reload(retry=DEFAULT_RETRY)\nreturn bucket.name",
        [],
    ),
    Pair(
        "AsyncRetry",
        "async def f(): return work()\nreturn asyncio.run({0}(f)())",
        "async def f(): return work()\nreturn asyncio.run({0}(f)())",
        ["done"],
    ),
]

_RR = "return {0}.call_with_retry(work, lambda error: None)"
_RF = "return forbear.retry(redis.ConnectionError, timeout=None, {0})(work)()"
Down = [redis.ConnectionError("down")]
REDIS = [
    Pair("NoBackoff", _RR, _RF, Down, "ocw"),
    Pair("ConstantBackoff", _RR, _RF, Down, "ocw"),
    Pair("Retry(ExponentialBackoff", _RR, _RF, Down, "ocw"),
    Pair("FullJitter", _RR, _RF, Down, "ocw"),
    Pair("EqualJitter", _RR, _RF, Down, "ocw"),
    Pair("ExponentialWithJitter", _RR, _RF, Down, "ocw"),
    Pair(
        "redis.Redis(",
        "with redis.Redis(port=port(), retry=Retry(NoBackoff(), 1)) as client:\n    return client.get('a')",
        "with forbear.clients.redis.Redis(port=port(), policy=redis_policy) as client:\n    return client.get('a')",
        [],
    ),
    Pair(
        "retry_on_error",
        "return Retry(NoBackoff(), 1, (redis.BusyLoadingError,)).call_with_retry(work, lambda _: None)",
        "return redis_policy.call(work)",
        [redis.BusyLoadingError("loading"), "done"],
    ),
]

_OLD = "return retry({0})(work)()"
_NEW = "return forbear.retry({0}, backoff=forbear.Constant(0))(work)()"
_OLD_WAIT = "return retry(stop_max_attempt_number=5, {0})(work)()"
_NEW_WAIT = "return forbear.retry(A, attempts=5, {0})(work)()"

RETRYING = [
    Pair(
        "retry_on_exception=(A, B)",
        "{0}\ndef f(): return work()\nreturn f()",
        "{0}\ndef f(): return work()\nreturn f()",
        [A("lost"), B("late"), ValueError("wrong")],
    ),
    Pair("retry_on_exception=judge", _OLD, _NEW, [A("lost"), ValueError("wrong")]),
    Pair("retry_on_result", _OLD, _NEW.replace("retry(", "retry(A, "), [None, None, "done"]),
    Pair("stop_max_attempt_number", _OLD, _NEW.replace("retry(", "retry(A, "), Lasting),
    Pair(
        "stop_max_delay",
        "return retry(wait_fixed=10000, {0})(work)()",
        "return forbear.retry(A, backoff=forbear.Constant(10), {0})(work)()",
        Lasting,
        "ocw",
    ),
    Pair("wait_fixed=2000", _OLD_WAIT, _NEW_WAIT, Lasting, "ocw"),
    Pair("wait_fixed=3000", _OLD_WAIT, _NEW_WAIT, Lasting, "ocw"),
    Pair("wait_random_min", _OLD_WAIT, _NEW_WAIT, Lasting, "ocw"),
    Pair("wait_incrementing_start", _OLD_WAIT, _NEW_WAIT, Lasting, "ocw"),
    Pair("wait_exponential_multiplier", _OLD_WAIT, _NEW_WAIT, Lasting, "ocw"),
    Pair(
        "except RetryError",
        "try:\n    retry(stop_max_attempt_number=2, wrap_exception=True)(work)()\n{1}:\n    return 'given up'",
        "try:\n    forbear.retry(A, attempts=2, backoff=forbear.Constant(0))(work)()\n{0}:\n    return 'given up'",
        Lasting,
    ),
]
