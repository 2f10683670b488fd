"""docs/migrate.md: both sides of each row do the same with the same failures, in virtual time."""

import asyncio
import datetime as dt
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import backoff
import httpx
import pytest
import redis
import requests
import retrying
import stamina
import tenacity
import urllib3
from google.api_core.retry import AsyncRetry, if_exception_type
from google.api_core.retry import Retry as GoogleRetry
from google.cloud import storage
from redis import backoff as redis_backoff
from redis.retry import Retry as RedisRetry
from requests.adapters import HTTPAdapter

import forbear
from forbear.clients import redis as our_redis
from forbear.clients.requests import RetryAdapter
from forbear.services import redis as redis_service
from forbear.testing.proxy import Proxy
from forbear_cloud import Cloud, Fault
from forbear_testkit import ROOT
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.docs.pair import A, B, event
from forbear_testkit.docs.pairs import SECTIONS
from forbear_testkit.docs.side_by_side import one_clock, our_clock, trace

PAGE = (ROOT / "docs" / "migrate.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([^`]+)`")


def judge(error: Exception) -> bool:
    """A connection that is lost may come back."""
    return isinstance(error, A)


def _is_over(it: Any) -> bool:
    """Stop after two attempts, by the state of tenacity or the event of forbear."""
    return (it.attempt_number if isinstance(it, tenacity.RetryCallState) else it.attempt) >= 2


def _three(_: object) -> int:
    return 3


def is_none(value: object) -> bool:
    """A value that is missing."""
    return value is None


def is_fatal(error: Exception) -> bool:
    """An error that no retry cures."""
    return str(error) == "fatal"


def is_pending(value: object) -> bool:
    """A value that is not ready."""
    return value == "pending"


NAMES: dict[str, Any] = {
    "A": A, "B": B, "forbear": forbear, "asyncio": asyncio, "judge": judge, "predicate": judge, "event": event,
    "is_none": is_none, "is_fatal": is_fatal,
    "is_pending": is_pending, "requests": requests, "httpx": httpx,
}  # fmt: skip
LIBRARIES: dict[str, dict[str, Any]] = {
    "tenacity": {name: getattr(tenacity, name) for name in dir(tenacity) if not name.startswith("__")},
    "backoff": {"backoff": backoff},
    "stamina": {"stamina": stamina, "dt": dt},
    "retrying": {"retry": retrying.retry, "RetryError": retrying.RetryError},
    "urllib3.Retry": {"Retry": urllib3.Retry, "HTTPAdapter": HTTPAdapter, "RetryAdapter": RetryAdapter},
    "google.api_core.retry.Retry": {"Retry": GoogleRetry, "AsyncRetry": AsyncRetry,
                                    "if_exception_type": if_exception_type},
    "redis.retry.Retry": {"redis": redis, "Retry": RedisRetry, "our_redis": our_redis, **vars(redis_backoff)},
}  # fmt: skip


def rows(section: str) -> list[tuple[str, str]]:
    """The rows of the table of a section, as pairs of cells."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line.replace("\\|", "\0") for line in text.splitlines() if line.startswith("|")][2:]
    return [(cells[1].replace("\0", "|"), cells[2].replace("\0", "|")) for cells in (line.split("|") for line in lines)]


_FUNCTIONS = {"stop=function": _is_over, "wait_exception": _three, "wait=function": _three}
"""`function` in a row of tenacity."""

MISTAKES = {"NameError", "AttributeError", "TypeError", "ImportError", "ModuleNotFoundError", "SyntaxError"}
"""Errors of a row that is wrong; both sides could have the same."""

CASES = [(section, number) for section, pairs in SECTIONS.items() for number in range(len(pairs))]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_row_is_run(section: str) -> None:
    """Each row of the page has its code here, in the same order."""
    cells = [left for left, _ in rows(section)]
    pairs = SECTIONS[section]
    assert [pair.key for pair, left in zip(pairs, cells, strict=False) if pair.key not in left] == []
    assert len(cells) == len(pairs)


class Failing(Wire):
    """A server that answers as a script says, from its first entry on for each client."""

    def __init__(self, script: list[Any]) -> None:
        super().__init__()
        self.script = script

    def _next(self, head: bytes) -> Answer:
        status = self.script[min(len(self.seen), len(self.script) - 1)]
        return reply(503, b"", "Retry-After: 7") if status == "after" else reply(status)


@contextmanager
def server(section: str, script: list[Any], request: pytest.FixtureRequest) -> Generator[Callable[[], dict[str, Any]]]:
    """Yield a function that returns the names of a server that begins its script anew, and a count of its requests."""
    if section == "urllib3.Retry":
        with ExitStack() as stack:

            def web() -> dict[str, Any]:
                wire = stack.enter_context(Failing(script))
                session = stack.enter_context(requests.Session())
                return {"url": f"{wire.url}/a", "session": session, "requests_seen": lambda: len(wire.seen)}

            yield web
    elif section == "google.api_core.retry.Retry":
        with ExitStack() as stack:

            def storage_server() -> dict[str, Any]:
                cloud = stack.enter_context(Cloud())
                cloud.store.create_bucket("my-bucket")
                cloud.fault(Fault.status(503, operation="storage.buckets.get"))
                client = storage.Client("p", ANONYMOUS, client_options={"api_endpoint": cloud.url})
                stack.callback(client.close)
                seen = {"requests_seen": lambda: len(cloud.requests)} if not script else {}
                return {"bucket": client.bucket("my-bucket"), **seen}

            yield storage_server
    elif section == "redis.retry.Retry":
        path = request.getfixturevalue("valkey")
        policy = redis_service.policy.with_attempts(2).with_backoff(forbear.Constant(0))
        with ExitStack() as stack:

            def port() -> int:
                lost = iter([True])
                return stack.enter_context(
                    Proxy(path, lambda sent, got: got is not None and b"GET" in sent and next(lost, False))
                ).port

            yield lambda: {"port": port, "redis_policy": policy}
    else:
        yield dict


def filled(code: str, cell: str, other: str) -> str:
    """Return code with the snippets of its cell for `{0}` and `{1}`, and the first one of the other for `{old0}`."""
    for number, snippet in enumerate(CODE.findall(cell)):
        code = code.replace(f"{{{number}}}", snippet.replace("with attempt:", "\n    with attempt:"))
    return code.replace("{old0}", "".join(CODE.findall(other)[:1]))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """An event that is not set."""
    event.clear()
    yield
    event.clear()


@pytest.mark.parametrize(
    ("section", "number"), CASES, ids=[f"{one}: {SECTIONS[one][which].key}" for one, which in CASES]
)
def test_both_sides_do_the_same(
    section: str, number: int, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """The code of both sides has the same outcome, calls and waits, as far as the page says that they agree."""
    pair, (left, right) = SECTIONS[section][number], rows(section)[number]
    assert pair.key in left, "the code of another row could run for ever"
    names = LIBRARIES[section] | NAMES | {"function": _FUNCTIONS.get(pair.key)}
    names["logged"] = lambda logger: [record for record in caplog.records if record.name == logger]
    with server(section, pair.script, request) as new_names:
        old = trace(filled(pair.old, left, right), pair.script, names | new_names(), one_clock)
        event.clear()
        new = trace(filled(pair.new, right, left), pair.script, names | new_names(), our_clock)
    assert not {type(each.outcome) is tuple and each.outcome[0] for each in (old, new)} & MISTAKES, (old, new)
    for letter, field in (("o", "outcome"), ("c", "calls"), ("w", "waits")):
        if letter in pair.same:
            assert getattr(new, field) == getattr(old, field), (old, new)
