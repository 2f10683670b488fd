"""The code around the snippets of each row of docs/migrate.md."""

import httpx

from forbear_testkit.docs.pair import A, B, Lasting, Limited, Pair, Twice, set_and_fail
from forbear_testkit.docs.pairs_of_clients import GOOGLE, REDIS, RETRYING, URLLIB3

_T = "return retry(reraise=True, {0})(work)()"
_F = "return forbear.retry(A, backoff=forbear.Constant(0), {0})(work)()"
_T_WAIT = "return retry(reraise=True, stop=stop_after_attempt(4), {0})(work)()"
_F_WAIT = "return forbear.retry(A, attempts=4, {0})(work)()"
_T_FETCH = "@retry(reraise=True, stop=stop_after_attempt(3))\ndef fetch():\n    return work()\n"
_F_FETCH = "@forbear.retry(A, backoff=forbear.Constant(0), attempts=3)\ndef fetch():\n    return work()\n"
_LOOP = "\n    with attempt:\n        return work()"
_ALOOP = "async def main():\n    {0}:\n        with attempt:\n            return work()\nreturn asyncio.run(main())"

TENACITY = [
    Pair(
        "retry_if_exception_type",
        "{0}\ndef f(): return work()\nreturn f()",
        "{0}\ndef f(): return work()\nreturn f()",
        [A(), B(), "done"],
    ),
    Pair(
        "retry_if_exception(judge)",
        "return retry(retry={0}, reraise=True)(work)()",
        "return forbear.retry({0}, backoff=forbear.Constant(0))(work)()",
        [A("lost"), ValueError("wrong")],
    ),
    Pair(
        "retry_if_not_exception_type",
        "return retry(reraise=True, retry={0})(work)()",
        "return forbear.retry({0}, backoff=forbear.Constant(0))(work)()",
        [A("lost"), B("late"), "done"],
    ),
    Pair(
        "retry_if_exception_message",
        "return retry(reraise=True, retry={0})(work)()",
        "return forbear.retry({0}, backoff=forbear.Constant(0))(work)()",
        [A("lost"), A("refused"), "done"],
    ),
    Pair("retry_if_result", "return retry(retry={0})(work)()", _F, [None, None, "done"]),
    Pair("stop_after_attempt(3)`", _T, _F, Lasting),
    Pair(
        "stop_after_delay(30)`,",
        "return retry(reraise=True, wait=wait_fixed(10), {0})(work)()",
        "return forbear.retry(A, backoff=forbear.Constant(10), {0})(work)()",
        Lasting,
        "ocw",
    ),
    Pair(
        "stop_after_attempt(3) |",
        "return retry(reraise=True, wait=wait_fixed(10), {0})(work)()",
        "return forbear.retry(A, backoff=forbear.Constant(10), {0})(work)()",
        Lasting,
        "ocw",
    ),
    Pair(
        "limits that differ",
        "limits = lambda state: state.attempt_number >= (10 if isinstance(state.outcome.exception(), A)"
        " else 3)\nreturn retry(reraise=True, stop=limits)(work)()",
        "return ({0}).with_backoff(forbear.Constant(0))(work)()",
        [B("late")],
    ),
    Pair("stop_never", _T, _F, [*[A()] * 20, "done"]),
    Pair(
        "stop_when_event_set",
        _T,
        "{0}\n    return forbear.retry(A, backoff=forbear.Constant(0))(work)()",
        [A("lost"), set_and_fail, "never"],
    ),
    Pair("stop=function", _T, _F, Lasting),
    Pair("wait_fixed(2)", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair("wait_fixed(3) +", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair("wait_random(", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair(
        "min=4",
        _T_WAIT.replace("(4)", "(7)"),
        _F_WAIT.replace("=4", "=7"),
        Lasting,
        "ocw",
    ),
    Pair("wait_exponential_jitter", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair("wait_exponential(multiplier=1, max", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair("wait_random_exponential", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair("wait_chain", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair("wait_exception", _T_WAIT.replace("{0}", "{0}"), _F_WAIT, Lasting, "ocw"),
    Pair("wait=function", _T_WAIT, _F_WAIT, Lasting, "ocw"),
    Pair(
        "TryAgain",
        "@retry\ndef f():\n    if work() == 'again':\n        {0}\n    return 'done'\nreturn f()",
        "@forbear.retry(A, backoff=forbear.Constant(0))\ndef f():\n    if work() == 'again':\n        {0}\n"
        "    return 'done'\nreturn f()",
        ["again", "again", "enough"],
    ),
    Pair(
        "retry_error_callback",
        "return retry(stop=stop_after_attempt(2), {0})(work)()",
        "return forbear.retry(A, backoff=forbear.Constant(0), attempts=2, {0})(work)()",
        Lasting,
    ),
    Pair(
        "RetryError",
        "try:\n    retry(retry=retry_if_result(is_none), stop=stop_after_attempt(2))(work)()\n"
        "except {0}:\n    return 'refused'",
        "try:\n    forbear.retry(A, on_result=is_none, attempts=2, backoff=forbear.Constant(0), {0})(work)()\n"
        "{1}:\n    return 'refused'",
        [None],
    ),
    Pair(
        "reraise=True",
        "return retry(stop=stop_after_attempt(2), {0})(work)()",
        "return forbear.retry(A, backoff=forbear.Constant(0), attempts=2)(work)()",
        Lasting,
    ),
    Pair(
        "before_sleep",
        "seen = []\nretry({0}seen.append)(work)()\nreturn len(seen)",
        "seen = []\nforbear.retry(A, backoff=forbear.Constant(0), {0}seen.append)(work)()\n"
        "return sum(isinstance(event, forbear.events.Scheduled) for event in seen)",
        Twice,
    ),
    Pair(
        "before_sleep_log",
        "import logging\nlogger = logging.getLogger('mine')\nretry(reraise=True, {0})(work)()\n"
        "return len(logged('mine'))",
        "forbear.retry(A, backoff=forbear.Constant(0))(work)()\n"
        "return len([line for line in logged('forbear') if line.levelname == 'WARNING'])",
        Twice,
    ),
    Pair(
        "Retrying(reraise",
        "fetch = work\nreturn {0}",
        "policy = forbear.retry(A, backoff=forbear.Constant(0))\nfetch = work\nreturn {0}",
        Twice,
    ),
    Pair(
        "attempt_number",
        "for attempt in Retrying(reraise=True):\n    with attempt:\n        work()\n        return {0}",
        "for attempt in forbear.retry(A, backoff=forbear.Constant(0)):\n    with attempt:\n        work()\n"
        "        return {0}",
        Twice,
    ),
    Pair(
        "for attempt in Retrying",
        "for attempt in Retrying(reraise=True):" + _LOOP,
        "policy = forbear.retry(A, backoff=forbear.Constant(0))\nfor attempt in policy:" + _LOOP,
        Twice,
    ),
    Pair(
        "async for attempt",
        _ALOOP.replace("{0}", "async for attempt in AsyncRetrying(reraise=True)"),
        "policy = forbear.retry(A, backoff=forbear.Constant(0))\n" + _ALOOP,
        Twice,
    ),
    Pair("retry_with", _T_FETCH + "return {0}", _F_FETCH + "return {0}", Lasting),
    Pair(
        "fetch.retry`",
        _T_FETCH + "return {0}.stop.max_attempt_number",
        _F_FETCH + "return {0}.limits.attempts",
        Lasting,
    ),
    Pair(
        "fetch.statistics",
        _T_FETCH + "try:\n    fetch()\nexcept A:\n    return {0}['attempt_number']",
        _F_FETCH + "try:\n    fetch()\nexcept A as error:\n    return {0}.count",
        Lasting,
    ),
    Pair(
        "sleep=",
        "return retry(reraise=True, wait=wait_fixed(9), sleep=lambda _: None)(work)()",
        "{0}\n    return forbear.retry(A, backoff=forbear.Constant(9))(work)()",
        Twice,
    ),
]

_B = "return backoff.on_exception(backoff.constant, A, interval=0, jitter=None, {0})(work)()"
_B_WAIT = "return backoff.on_exception({0}, A, max_tries=4)(work)()"
_B_RAW = "return backoff.on_exception({0}, max_tries=4)(work)()"

BACKOFF = [
    Pair(
        "on_exception",
        "{0}\ndef f(): return work()\nreturn f()",
        "{0}\ndef f(): return work()\nreturn f()",
        [A(), B(), "x"],
    ),
    Pair("max_tries", _B, _F, Lasting),
    Pair(
        "max_time",
        "return backoff.on_exception(backoff.constant, A, interval=70, jitter=None, {0})(work)()",
        "return forbear.retry(A, backoff=forbear.Constant(70), {0})(work)()",
        Lasting,
        "oc",
    ),
    Pair("giveup", _B, "return forbear.retry({0}, backoff=forbear.Constant(0))(work)()", [A("lost"), A("fatal")]),
    Pair(
        "backoff.expo`,",
        "return backoff.on_exception({0}, A, max_tries=4)(work)()",
        "return forbear.retry(A, attempts=4)(work)()",
        Lasting,
        "ocw",
    ),
    Pair(
        "backoff.expo, base",
        "return backoff.on_exception(exception=A, max_tries=4, wait_gen={0})(work)()",
        _F_WAIT,
        Lasting,
        "ocw",
    ),
    Pair(
        "with its default jitter",
        "return backoff.on_exception(exception=A, max_tries=4, wait_gen={0})(work)()",
        _F_WAIT,
        Lasting,
        "ocw",
    ),
    Pair(
        "backoff.fibo",
        "return backoff.on_exception(exception=A, max_tries=8, wait_gen={0})(work)()",
        _F_WAIT.replace("=4", "=8"),
        Lasting,
        "ocw",
    ),
    Pair(
        "backoff.constant, interval=1, jitter",
        "return backoff.on_exception(exception=A, max_tries=4, wait_gen={0})(work)()",
        _F_WAIT,
        Lasting,
        "ocw",
    ),
    Pair(
        "backoff.runtime",
        "return backoff.on_exception(exception=A, max_tries=4, jitter=None, wait_gen={0})(work)()",
        _F_WAIT,
        [Limited()],
        "ocw",
    ),
    Pair(
        "on_predicate",
        "{0}\ndef f(): return work()\nreturn f()",
        "{0}\ndef f(): return work()\nreturn f()",
        ["pending", "pending", "ready"],
    ),
    Pair(
        "on_backoff",
        "seen = []\nlog = seen.append\nbackoff.on_exception(backoff.expo, A, {0})(work)()\nreturn len(seen)",
        "seen = []\nlog = seen.append\nforbear.retry(A, {0})(work)()\n"
        "return sum(isinstance(event, forbear.events.Scheduled) for event in seen)",
        Twice,
    ),
    Pair(
        "on_success",
        "seen = []\ncount = seen.append\nbackoff.on_exception(backoff.expo, A, {0})(work)()\nreturn len(seen)",
        "seen = []\ncount = seen.append\nforbear.retry(A, {0})(work)()\nreturn len(seen)",
        ["done"],
    ),
    Pair(
        "raise_on_giveup",
        "return backoff.on_exception(backoff.expo, A, max_tries=2, {0})(work)()",
        "return forbear.retry(A, attempts=2, {0})(work)()",
        Lasting,
    ),
]

_CONTEXT = "stamina.retry_context(on=A, wait_initial=0, wait_jitter=0)"
STAMINA = [
    Pair(
        "on=httpx.HTTPError",
        "{0}\ndef f(): return work()\nreturn f()",
        "{0}\ndef f(): return work()\nreturn f()",
        [httpx.ConnectError("refused"), "done"],
    ),
    Pair(
        "on=judge",
        "return stamina.retry({0}, wait_jitter=0)(work)()",
        "return forbear.retry({0})(work)()",
        [A("lost"), ValueError("wrong")],
    ),
    Pair(
        "attempts=3, timeout",
        "return stamina.retry(on=A, {0})(work)()",
        "return forbear.retry(on=A, {old0})(work)()",
        Lasting,
    ),
    Pair(
        "wait_initial",
        "return stamina.retry(on=A, attempts=6, {0})(work)()",
        "return forbear.retry(A, attempts=6, {0})(work)()",
        Lasting,
        "ocw",
    ),
    Pair("retry_context", "{0}\n        return work()", "{0}\n        return work()", Twice),
    Pair("RetryingCaller", "fetch = work\nreturn {0}", "fetch = work\nreturn {0}", Twice),
    Pair(
        "attempt.num",
        f"for attempt in {_CONTEXT}:\n    with attempt:\n        work()\n        return {{0}}",
        "for attempt in forbear.retry(A):\n    with attempt:\n        work()\n        return {0}",
        Twice,
    ),
    Pair(
        "set_active",
        "{0}\ntry:\n    return stamina.retry(on=A)(work)()\nfinally:\n    stamina.set_active(True)",
        "{0}\ntry:\n    return forbear.retry(on=A)(work)()\nfinally:\n    forbear.enable()",
        Lasting,
    ),
    Pair(
        "set_testing",
        "{0}\ntry:\n    return stamina.retry(on=A, attempts=1)(work)()\nfinally:\n    stamina.set_testing(False)",
        "{0}\n    return forbear.retry(on=A, attempts=1)(work)()",
        Lasting,
    ),
    Pair(
        "set_on_retry_hooks",
        "seen = []\nstamina.instrumentation.set_on_retry_hooks([seen.append])\n"
        "try:\n    stamina.retry(on=A)(work)()\nfinally:\n    stamina.instrumentation.set_on_retry_hooks(None)\n"
        "return len(seen)",
        "seen = []\nforbear.observe.listen(seen.append)\n"
        "try:\n    forbear.retry(on=A)(work)()\n"
        "finally:\n    forbear.observe.listen(forbear.observe.logging.Logging())\n"
        "return sum(isinstance(event, forbear.events.Scheduled) for event in seen)",
        Twice,
    ),
]

SECTIONS = {
    "tenacity": TENACITY, "backoff": BACKOFF, "stamina": STAMINA, "retrying": RETRYING, "urllib3.Retry": URLLIB3,
    "google.api_core.retry.Retry": GOOGLE, "redis.retry.Retry": REDIS,
}  # fmt: skip
