"""The rules: the id, severity, reason, example and cure of each. `checks` finds what breaks them."""

from dataclasses import dataclass, field

from forbear_audit.findings import Severity


@dataclass(frozen=True)
class AuditRule:
    """One rule: its id, its severity, what it says, why, an example that breaks it, and the cures by library.

    `cures` has a text for each library that needs its own words; `cure` is for all others. `notes` are libraries for
    which a finding is only a note, because they have no option that would be the cure. A rule that is not `is_on`
    applies only if it is selected.
    """

    id: str
    severity: Severity
    summary: str
    why: str
    example: str
    cure: str
    cures: dict[str, str] = field(default_factory=dict[str, str])
    notes: frozenset[str] = frozenset()
    is_on: bool = True

    @property
    def anchor(self) -> str:
        """The anchor of the rule on the page of all rules."""
        return self.id.lower()

    def cure_for(self, library: str) -> str:
        """Return the cure in the words of a library."""
        return self.cures.get(library, self.cure)

    def severity_for(self, library: str) -> Severity:
        """Return the severity of a finding about a library."""
        return "note" if library in self.notes else self.severity


_ALL = (
    AuditRule(
        "UNSAFE",
        "error",
        "A call that may have been executed is repeated, and is not safe to repeat.",
        "An error such as a lost response or a timeout does not say if the server executed the call. If it did, the "
        "second attempt charges twice, counts twice, or replaces what somebody else wrote.",
        "@stamina.retry(on=httpx.HTTPError)\ndef charge(cents):\n    return httpx.post(URL, json={'cents': cents})",
        "retry only errors that prove that nothing was done, such as a failed connect, or make the call safe: an "
        "idempotency key made outside of what is repeated, a precondition, ON CONFLICT",
        {
            "urllib3": "leave `allowed_methods` at its default, which has no POST and no PATCH",
            "httpx-retries": "leave `allowed_methods` at its default, which has no POST and no PATCH",
            "aiohttp-retry": "send it with a client that does not retry, or name the methods in `methods=`",
            "google-cloud-storage": "pass `if_generation_match`, or `retry=DEFAULT_RETRY_IF_GENERATION_SPECIFIED`",
            "redis": "use forbear.clients.redis, which does not repeat this command after a lost response",
            "celery": "pass an idempotency key that the caller of the task makes, or do not retry this call",
            "webhook": "answer 2xx once it is done, or make the id of the event the idempotency key",
            "forbear": "use `repeatable=False`, or an adapter of forbear.clients, which judges each request",
        },
    ),
    AuditRule(
        "MAYBE-UNSAFE",
        "warning",
        "A POST or PATCH is repeated, and the code does not show what the request does.",
        "The address comes from elsewhere. If the request creates or changes something, a second attempt may do so "
        "twice; if it only reads or computes, there is no harm.",
        "@stamina.retry(on=httpx.HTTPError)\ndef call(url, body):\n    return httpx.post(url, json=body)",
        "let the caller say whether the request may be repeated, or pass an idempotency key through",
        is_on=False,
    ),
    AuditRule(
        "OUTER-KEY",
        "error",
        "An idempotency key is made inside of what is repeated, so that every attempt has another one.",
        "The server takes each key for a call of its own, and executes all of them.",
        "@stamina.retry(on=httpx.HTTPError)\ndef pay(body):\n"
        "    return httpx.post(URL, json=body, headers={'Idempotency-Key': str(uuid.uuid4())})",
        "make the key before the call that is repeated, and pass it in",
    ),
    AuditRule(
        "NESTED",
        "warning",
        "A retry runs within another retry, so their attempts multiply.",
        "Five attempts around a client that makes three are fifteen. In an outage, every layer multiplies the load.",
        "client = openai.OpenAI()  # retries by itself\n\n@stamina.retry(on=openai.APIConnectionError)\n"
        "def ask(text):\n    return client.responses.create(model='m', input=text)",
        "retry in one place: switch the inner retries off (`max_retries=0`, `retry=None`, `total_max_attempts=1`), or "
        "remove the outer ones",
    ),
    AuditRule(
        "UNBOUNDED",
        "error",
        "The retry has no limit of attempts and no deadline.",
        "If the error is permanent, the program never ends, and never says why.",
        "@tenacity.retry(wait=tenacity.wait_random_exponential(max=60))\ndef fetch():\n    return load()",
        "compare a counter or a deadline, and raise the last error",
        {
            "tenacity": "add `stop=stop_after_attempt(5) | stop_after_delay(60)`",
            "backoff": "add `max_tries=5, max_time=60`",
            "stamina": "pass `attempts` or `timeout`",
            "retrying": "add `stop_max_attempt_number=5, stop_max_delay=60000`",
            "forbear": "pass `attempts` or `timeout`",
            "google-api-core": "pass a number of seconds as `timeout`",
            "celery": "pass a number as `max_retries`",
            "redis": "pass a number from 0 as `retries`",
            "urllib3": "pass a number as `total`",
        },
        frozenset({"loop"}),
    ),
    AuditRule(
        "NO-DEADLINE",
        "warning",
        "Attempts are limited, but not the time that they take together.",
        "Five attempts that each wait for a timeout of 60 seconds take over five minutes, and the caller is gone.",
        "@tenacity.retry(stop=tenacity.stop_after_attempt(5), wait=tenacity.wait_random_exponential(max=60))\n"
        "def fetch():\n    return load()",
        "compare `time.monotonic()` with a deadline before each wait",
        {
            "tenacity": "add a limit of time: `stop=stop_after_attempt(5) | stop_after_delay(60)`",
            "backoff": "add `max_time=60`",
            "stamina": "pass `timeout=60`",
            "retrying": "add `stop_max_delay=60000`",
            "forbear": "pass `timeout=60`",
            "urllib3": "urllib3 has no limit of time: put one around the call",
        },
        frozenset({"loop", "urllib3", "httpx-retries", "aiohttp-retry"}),
    ),
    AuditRule(
        "NO-JITTER",
        "warning",
        "The waits grow, but without a random part.",
        "Clients that failed together retry together, wave after wave.",
        "for attempt in range(5):\n    try:\n        return fetch()\n"
        "    except OSError:\n        time.sleep(2 ** attempt)",
        "multiply the wait by `random.uniform(0.5, 1)`",
        {
            "tenacity": "use `wait_random_exponential(max=60)`",
            "backoff": "leave `jitter` at its default, `backoff.full_jitter`",
            "stamina": "leave `wait_jitter` at its default, 1 second",
            "retrying": "add `wait_jitter_max=1000`",
            "urllib3": "add `backoff_jitter=1` (urllib3 2)",
            "httpx-retries": "leave `backoff_jitter` at its default",
            "aiohttp-retry": "use `JitterRetry`",
            "redis": "use `FullJitterBackoff` or `ExponentialWithJitterBackoff`",
            "celery": "leave `retry_jitter` at its default, True",
            "forbear": 'leave `jitter` at its default, "full"',
        },
    ),
    AuditRule(
        "FIXED",
        "warning",
        "The waits do not grow, or there are none.",
        "A service that is overloaded gets the same load again and again, and does not recover.",
        "@tenacity.retry(stop=tenacity.stop_after_attempt(3))\ndef fetch():\n    return load()",
        "double the wait after each failure, up to a cap, with a random part",
        {
            "tenacity": "use `wait=wait_random_exponential(max=60)`",
            "backoff": "use `backoff.expo`",
            "retrying": "use `wait_exponential_multiplier=1000, wait_exponential_max=60000, wait_jitter_max=1000`",
            "urllib3": "add `backoff_factor=1, backoff_jitter=1`",
            "httpx-retries": "add `backoff_factor=0.5`",
            "aiohttp-retry": "use `JitterRetry`",
            "redis": "use `FullJitterBackoff`",
            "celery": "add `retry_backoff=True`, or pass a `countdown` that grows",
            "forbear": "leave `backoff` at its default, or pass `forbear.Exponential()`",
            "grpc": "set `backoffMultiplier` to 2",
        },
        is_on=False,
    ),
    AuditRule(
        "NO-CAP",
        "warning",
        "The waits grow without a cap, to more than two minutes.",
        "The twentieth wait of a backoff that doubles takes six days.",
        "@backoff.on_exception(backoff.expo, OSError, max_tries=15)\ndef fetch():\n    return load()",
        "cap the wait: `min(60, 2 ** attempt)`",
        {
            "tenacity": "add `max=60` to the wait",
            "backoff": "add `max_value=60`",
            "retrying": "add `wait_exponential_max=60000`",
        },
        is_on=False,
    ),
    AuditRule(
        "CATCH-ALL",
        "warning",
        "The retry repeats after every Exception, or swallows interrupts and cancellation.",
        "A bug raises the same error on each attempt. A cancelled task or Ctrl-C must end the program.",
        "@stamina.retry(on=Exception)\ndef fetch():\n    return load()",
        "name the errors that another attempt may cure, such as connection errors and timeouts",
        {
            "tenacity": "add `retry=retry_if_exception_type((ConnectionError, TimeoutError))`",
            "forbear": "use `on=forbear.transient`",
        },
    ),
    AuditRule(
        "WRONG-ERROR",
        "warning",
        "The retry repeats after an error that no attempt cures.",
        "A missing file, a wrong password or a status 404 is the same the next time. The retry only delays the error.",
        "@backoff.on_exception(backoff.expo, KeyError, max_time=60)\ndef fetch():\n    return load()['value']",
        "leave this error out; of HTTP statuses repeat only 408, 429 and some of 5xx",
        is_on=False,
    ),
    AuditRule(
        "RETRY-AFTER",
        "warning",
        "A status 429 is retried without a look at the server's Retry-After.",
        "The server says when it has room again. An earlier attempt is refused, and may be counted against the client.",
        "if response.status_code == 429:\n    time.sleep(5)\n    continue",
        "wait at least as long as the header Retry-After says",
        {
            "urllib3": "leave `respect_retry_after_header` at its default, True",
            "httpx-retries": "leave `respect_retry_after_header` at its default, True",
            "backoff": "use `backoff.runtime` with a `value` that reads the header",
        },
    ),
    AuditRule(
        "STATE",
        "warning",
        "An attempt changes something that the next one does not reset.",
        "The second attempt sends a file from its end, an empty iterator, or the same entry twice.",
        "with open(path, 'rb') as file:\n    for attempt in range(3):\n        try:\n"
        "            return requests.put(url, data=file)\n        except OSError:\n            time.sleep(1)",
        "make it anew in each attempt, rewind it, or change it after the call",
        is_on=False,
    ),
    AuditRule(
        "BLOCKING",
        "error",
        "An async retry waits by time.sleep().",
        "While it sleeps, no other task of the event loop runs.",
        "async def fetch():\n    while True:\n        try:\n            return await load()\n"
        "        except OSError:\n            time.sleep(1)",
        "use `await asyncio.sleep(...)`",
        is_on=False,
    ),
    AuditRule(
        "LAST-SLEEP",
        "note",
        "The retry also sleeps after its last attempt.",
        "The caller waits for nothing before it gets the error.",
        "for attempt in range(3):\n    try:\n        return fetch()\n    except OSError:\n        time.sleep(5)\n"
        "raise RuntimeError",
        "raise in the last attempt, before the wait",
    ),
    AuditRule(
        "LOST-CAUSE",
        "note",
        "After the last attempt a new error is raised without its cause.",
        "The error says that the retries failed, but not why.",
        "for attempt in range(3):\n    try:\n        return fetch()\n    except OSError:\n        pass\n"
        "raise RuntimeError('failed')",
        "keep the last error, and `raise ... from last`",
    ),
)

RULES: dict[str, AuditRule] = {rule.id: rule for rule in _ALL}
"""All rules by their ids, in the order of the documentation."""

DEFAULT_RULES = tuple(rule.id for rule in _ALL if rule.is_on)
"""The rules that apply unless others are selected."""
