"""`forbear.transient`: HTTP, gRPC, Redis and sockets, chains and groups of errors, and what it never does."""

import asyncio
import pickle
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import grpc
import pytest
import redis
import requests
import requests.adapters
import urllib3
from hypothesis import given
from hypothesis import strategies as st

import forbear
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.testing import virtual_time
from forbear_testkit import ROOT
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.judges.rows import CLOUDS, DATABASES, EXHAUSTED, THROTTLED, Row
from forbear_testkit.judges.wire_rows import OWN, caused
from forbear_testkit.services import errors

ROWS = [*OWN, *DATABASES, *CLOUDS]
judge, in_transaction = forbear.transient, forbear.transient.transaction
WAIT = Verdict(Kind.TRANSIENT, retry_after=7.0, throttled=True, wait_from="Retry-After")


@pytest.mark.parametrize("row", OWN, ids=lambda row: f"{row.kind}-{row.name}")
def test_each_error_has_its_verdict(row: Row) -> None:
    """No transport error proves anything around a function, for it may have sent something before."""
    assert judge(row.make()) == row.around
    assert in_transaction(row.make()) == row.in_transaction


def test_the_server_s_word_is_heard() -> None:
    """Retry-After of a response, and the pushback of a gRPC server."""
    for make in errors.OF_HTTP.values():
        assert judge(make(503, b"", {"Retry-After": "7"})) == WAIT
    pushed = errors.OF_GRPC["grpc"](grpc.StatusCode.UNAVAILABLE, (("grpc-retry-pushback-ms", "7000"),))
    assert judge(pushed) == WAIT.replace(wait_from="grpc-retry-pushback-ms")


def test_retries_of_urllib3_that_are_used_up() -> None:
    """urllib3 and requests say so after responses, though not after lost connections."""
    retry = urllib3.Retry(total=1, status_forcelist=[503], backoff_factor=0)
    with Wire(reply(503)) as wire:
        with pytest.raises(urllib3.exceptions.MaxRetryError) as plain, urllib3.PoolManager(retries=retry) as pool:
            pool.request("GET", wire.url)
        with requests.Session() as session:
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
            with pytest.raises(requests.exceptions.RetryError) as wrapped:
                session.get(wire.url)
        assert len(wire.seen) == 4
    assert judge(plain.value) == judge(wrapped.value) == EXHAUSTED


async def test_a_host_that_refuses_at_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio then raises a bare OSError, by whose text it is known."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        loop: Any = asyncio.get_running_loop()

        async def two_addresses(*args: object, **kwargs: object) -> list[object]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", port)) for n in (1, 2)]

        monkeypatch.setattr(loop, "getaddrinfo", two_addresses)
        with pytest.raises(OSError, match="Multiple exceptions") as caught:
            await loop.create_connection(asyncio.Protocol, "localhost", port)
    assert judge(caught.value) == TRANSIENT


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind}-{row.name}")
def test_what_an_error_of_the_application_was_raised_from(row: Row) -> None:
    """The first error in a chain that says anything counts, however deep; what was merely being handled does not."""
    assert judge(caused(RuntimeError("x"), caused(LookupError("x"), row.make()))) == row.around
    unrelated = RuntimeError("x")
    unrelated.__context__ = row.make()
    assert judge(unrelated) is PERMANENT


def test_all_members_of_a_group_must_be_transient() -> None:
    """All members must be transient; the longest wait counts, and a thing proved for one is not proved for all."""
    shared = ConnectionResetError()
    longer = errors.http_error(503, b"", {"Retry-After": "7"})
    shorter = errors.http_error(503, b"", {"Retry-After": "2"})
    assert judge(ExceptionGroup("x", [shorter, longer, shared, shared])) == WAIT
    assert judge(ExceptionGroup("x", [caused(OSError(), shared) for _ in range(300)])) == TRANSIENT
    assert judge(ExceptionGroup("x", [shared, errors.OF_GRPC["grpc"](grpc.StatusCode.ABORTED, ())])) is CONFLICT
    assert in_transaction(ExceptionGroup("x", [ConnectionRefusedError()])) == TRANSIENT
    assert judge(ExceptionGroup("x", [ConnectionResetError() for _ in range(2000)])) is PERMANENT  # too many to look at


def test_a_refused_connection_is_one_attempt_with_repeatable_false() -> None:
    """Around a plain function nothing is proven."""
    calls: list[int] = []

    @forbear.retry(on=forbear.transient, repeatable=False)
    def send() -> None:
        calls.append(1)
        raise ConnectionRefusedError

    with virtual_time(seed=1), pytest.raises(ConnectionRefusedError):
        send()
    assert len(calls) == 1


@pytest.mark.parametrize(("exhausted", "reads"), [(False, 1), (True, 3)])
def test_an_update_ends_with_exhausted_retries(exhausted: bool, reads: int) -> None:
    """A read-modify-write obeys the guard, too, unless told otherwise."""
    calls: list[int] = []

    def read() -> int:
        calls.append(1)
        raise requests.exceptions.RetryError("x")

    policy = forbear.retry(on=judge, attempts=3, retry_exhausted=exhausted)
    with virtual_time(seed=1), pytest.raises(requests.exceptions.RetryError):
        forbear.update(read=read, modify=_same, write=_same, conflict=lambda error: False, policy=policy)
    assert len(calls) == reads


def _same(value: int) -> int:
    return value


class Hostile(Exception):
    """An error whose attributes are what the test says, or raise."""

    def __init__(self, attributes: dict[str, object], broken: frozenset[str]) -> None:
        super().__init__("x")
        self.__dict__.update(attributes)
        self.__dict__["broken"] = broken

    def __getattribute__(self, name: str) -> object:
        if name != "__dict__" and name in super().__getattribute__("__dict__").get("broken", ()):
            raise RuntimeError(name)
        return super().__getattribute__(name)


NAMES = [
    "args", "body", "code", "content", "errno", "headers", "kwargs", "orig", "pgcode", "query", "reason", "request",
    "resp", "response", "sqlstate", "statement", "status", "status_code", "trailing_metadata", "type", "__class__",
    "__cause__",
]  # fmt: skip
THINGS = (
    st.none() | st.integers() | st.text(max_size=6) | st.booleans() | st.just(len) | st.binary(max_size=3)
    | st.dictionaries(st.sampled_from(["Error", "ResponseMetadata", "error", "headers"]), st.integers(), max_size=2)
    | st.builds(ConnectionResetError) | st.just("40001" * 1_000_000)
)  # fmt: skip


@cache
def kinds() -> list[type]:
    """Return the classes of all errors above."""
    return [Exception, *{kind for row in ROWS if not issubclass(kind := type(row.make()), BaseExceptionGroup)}]


@given(st.data(), st.dictionaries(st.sampled_from(NAMES[1:-2]), THINGS), st.frozensets(st.sampled_from(NAMES)))
def test_the_judge_never_raises(data: st.DataObject, attributes: dict[str, object], broken: frozenset[str]) -> None:
    """Whatever an error's class and attributes do, the judge returns a verdict."""
    kind = data.draw(st.sampled_from(kinds()))
    try:
        mixed: Any = type("Mixed", (Hostile, kind), {})(attributes, broken)
    except Exception:
        mixed = Hostile(attributes, broken)
    assert isinstance(judge(mixed), Verdict)
    assert isinstance(in_transaction(caused(ValueError(), mixed)), Verdict)


def _endless() -> Exception:
    """A chain of ten thousand errors."""
    last: Exception = Exception()
    for _ in range(10_000):
        last = caused(RuntimeError(), last)
    return last


def _entangled() -> Exception:
    """Refused connections, each raised in the midst of other failures."""
    error: Exception = ConnectionRefusedError()
    for _ in range(100):
        error = caused(ConnectionRefusedError(), error)
        context: BaseException = error
        for _ in range(100):
            context.__context__ = caused(RuntimeError(), caused(RuntimeError(), RuntimeError()))
            context = context.__context__
    return error


class Endless(dict[str, str]):
    """Headers without an end."""

    def items(self) -> Any:
        return (("retry-after", "7") for _ in count())


def _endless_headers() -> Exception:
    return Hostile({"status_code": 503, "headers": Endless()}, frozenset())


def _endless_metadata() -> Exception:
    call = errors.OF_GRPC["grpc"](grpc.StatusCode.UNAVAILABLE, ())
    call.__dict__["trailing_metadata"] = lambda: (("a", "b") for _ in count())
    return call


def _circle() -> Exception:
    first, second = urllib3.exceptions.HTTPError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    second.__context__ = first
    return first


def _nest() -> Exception:
    group: list[Exception] = [ConnectionResetError()]
    for _ in range(400):
        group = [ExceptionGroup("x", group), ExceptionGroup("x", group)]
    return group[0]


@pytest.mark.parametrize(("make", "verdict"), [
    (_endless, PERMANENT), (_circle, PERMANENT), (_nest, PERMANENT), (_entangled, TRANSIENT),
    (_endless_headers, WAIT), (_endless_metadata, THROTTLED),
    (lambda: redis.ConnectionError("x" * 10_000_000), TRANSIENT),
])  # fmt: skip
def test_it_ends(make: Callable[[], Exception], verdict: Verdict) -> None:
    """Chains, circles, groups of groups and huge texts are cut, not followed to their end."""
    error = make()
    assert judge(error) == verdict
    assert isinstance(in_transaction(error), Verdict)


def test_policies_with_it_can_be_pickled() -> None:
    """Policies with it can be compared and pickled."""
    assert pickle.loads(pickle.dumps(judge)) == judge != in_transaction
    assert pickle.loads(pickle.dumps(in_transaction)) == in_transaction == in_transaction.transaction
    assert "transient" in dir(forbear)


@pytest.mark.unmutated
def test_it_imports_no_library() -> None:
    """Neither `import forbear` nor a verdict loads a client library, and the former does not load the judge."""
    script = """
import sys, forbear
assert "forbear.judges" not in sys.modules and "forbear.services" not in sys.modules
assert forbear.transient(ConnectionResetError()) == forbear.verdicts.TRANSIENT
print(*(name for name in sys.modules if "." not in name and name not in sys.stdlib_module_names))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    foreign = {name for name in done.stdout.split() if not name.startswith("_")}
    assert foreign <= {"forbear", "sitecustomize", "usercustomize", "distutils-precedence"}


def _words(verdict: Verdict) -> str:
    words = {verdict.kind.value: True, "throttled": verdict.throttled, "exhausted": verdict.exhausted}
    return ", ".join(word for word, said in words.items() if said)


def test_the_documentation_says_the_same() -> None:
    """The table of docs/transient.md has a row for every kind of error above, with the verdicts of the judge."""
    page = ROOT.joinpath("docs/transient.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| .*\|$", page, re.MULTILINE)
    written = {tuple(cell.strip() for cell in line.split("|")[1:-1]) for line in lines}
    written -= {("error", "around a function", "around a transaction")}
    assert written == {
        (row.kind, _words(row.around), "the same" if row.within is None else _words(row.within)) for row in ROWS
    }
