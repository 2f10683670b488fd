"""The object that users hold: arguments, copies, threads, forks, the end of a process, and other clients."""

import atexit
import copy
import gc
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
import valkey
from cryptography import x509
from redis.backoff import NoBackoff
from redis.retry import Retry

import forbear
from forbear.core.budget import MICRO
from forbear.core.events import Event
from forbear.policy import retry
from forbear.shared_budget import budget as budget_module
from forbear.shared_budget.budget import SharedBudget
from forbear.testing.valkey import valkey_server
from forbear_testkit.cli.tls_front import tls_front
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.redis.proxy import CUT, FORWARD, in_turn, proxy
from forbear_testkit.clients.secure import trusted

URL = "redis://me:hunter2@localhost/0"


@pytest.fixture(scope="module")
def path() -> Generator[str]:
    """Run one server for all tests of this module."""
    with valkey_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _patient(patient: None) -> None:
    """Give the server as long as it needs."""


@pytest.mark.unmutated
def test_it_is_public_and_loaded_when_used() -> None:
    """`import forbear` loads neither the room nor sockets."""
    assert forbear.budgets.SharedBudget is SharedBudget
    lazy = {"forbear.shared_budget", "forbear.run.late_grant", "socket"}
    code = f"import sys, forbear; sys.exit(bool({lazy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"url_or_client": None}, TypeError, "`url_or_client` must be a URL such as redis://"),
    ({"url_or_client": redis.Redis}, TypeError, "`url_or_client` must be a URL such as redis://"),
    ({"url_or_client": redis.asyncio.Redis()}, TypeError, "`url_or_client` must be a sync client"),
    (
        {"url_or_client": redis.Redis()},
        ValueError,
        r"with (3|10) retries; make it with retry=Retry\(NoBackoff\(\), 0\)",
    ),
    ({"url_or_client": "http://h"}, ValueError, "`url_or_client` must be a URL such as redis://"),
    ({"name": 7}, TypeError, "`name` must be a str, got 7"),
    ({"name": ""}, ValueError, "`name` must have 1 to 200 printable characters without braces, got ''"),
    ({"name": "a}b"}, ValueError, "`name` must have"),
    ({"name": "a\nb"}, ValueError, "`name` must have"),
    ({"capacity": 0.5}, ValueError, r"`capacity` must be from 1 \(the cost of a retry\) to 1000000000, got 0.5"),
    ({"capacity": 1e10}, ValueError, "`capacity` must be from 1"),
    ({"capacity": "10"}, TypeError, "`capacity` must be a number"),
    ({"deposit": -1}, ValueError, "`deposit` must be"),
    ({"window": 0}, ValueError, "`window` must be"),
    ({"on_event": 1}, TypeError, "`on_event` must be callable"),
]


@pytest.mark.parametrize(("arguments", "kind", "text"), WRONG)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], kind: type[Exception], text: str) -> None:
    """The error names the parameter, the rule and the value."""
    made: Any = SharedBudget
    with pytest.raises(kind, match=text):
        made(**{"url_or_client": URL, "name": "x"} | arguments)


def test_its_texts_have_no_password() -> None:
    """Neither user nor password is shown."""
    budget = SharedBudget(URL, "billing", window=timedelta(seconds=2))  # type: ignore[arg-type]
    assert repr(budget) == "SharedBudget('redis://localhost:6379/0', 'billing', capacity=100, deposit=0.1)"
    assert "hunter2" not in repr(retry(OSError, budget=budget))


def test_copies_are_the_same_and_pickles_share_the_bucket(path: str) -> None:
    """A budget that another process unpickles has a share of its own in the same bucket."""
    budget = SharedBudget(f"unix://{path}", "pickled", capacity=20)
    assert copy.copy(budget) is copy.deepcopy(budget) is budget
    other = pickle.loads(pickle.dumps(budget))
    assert [budget.take(), other.take(), budget.take()] == [True, True, False]
    assert repr(other) == repr(budget)
    for one in (budget, other):
        one._share.close()


def test_a_pickle_keeps_every_argument() -> None:
    """The new budget has the same bucket, sizes and listener."""
    budget = SharedBudget(URL, "kept", capacity=20, deposit=0.5, window=3, on_event=print)
    again = pickle.loads(pickle.dumps(budget))
    assert again._arguments == (URL, "kept", 20, 0.5, 3, print)
    share = again._share
    assert (share.capacity, share.deposit, share.credit.window) == (20 * MICRO, MICRO // 2, 3)


@pytest.mark.parametrize("name", ["redis", "valkey"])
def test_a_client_object(path: str, name: str) -> None:
    """A sync client of either library carries the script; a lost response is not asked for again."""
    made: dict[str, Callable[..., Any]] = {
        "redis": partial(redis.Redis, retry=Retry(NoBackoff(), 0)),
        "valkey": valkey.Valkey,
    }
    events: list[Event] = []
    with made[name](unix_socket_path=path) as client:
        budget = SharedBudget(client, f"by {name}", capacity=20, on_event=events.append)
        budget.check()
        assert [budget.take() for _ in range(3)] == [True, True, False]
        budget._share.close()
    assert events == []
    with proxy(path, in_turn(EVAL=[CUT, CUT])) as seen, made[name](port=seen.port) as client:
        budget = SharedBudget(client, "lost", on_event=events.append)
        assert not budget.take()
        assert seen.asked.count("EVAL") == 1
        with pytest.raises(forbear.budgets.BudgetUnavailable, match="ConnectionError"):
            budget.check()
        budget._share.close()
    assert [type(event) for event in events] == [forbear.events.BudgetDegraded]


def test_tls(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rediss:// URL needs no library: the handshake is a thread's, and then the connection is as any other."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pem"))
    with proxy(path, lambda _: FORWARD) as seen, tls_front(f":{seen.port}", tmp_path / "pem") as options:
        budget = SharedBudget(f"rediss://localhost:{options[-1].rpartition(':')[2]}", "tls")
        budget.check()
        assert [budget.take() for _ in range(3)] == [True] * 3
        assert seen.connections == 2  # one was that of `check`
        budget._share.close()


def test_a_certificate_for_another_host_gets_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the host is checked before anything is sent, though a trusted authority signed."""
    context = trusted(tmp_path / "pem", monkeypatch, [x509.DNSName("other.example")])
    received: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
            received.append(secured.recv(65_536))

    with listening(serve) as port:
        budget = SharedBudget(f"rediss://me:secret@localhost:{port}", "named")
        with pytest.raises(
            forbear.budgets.BudgetUnavailable,
            match=r"certificate verify failed.*; use the host's name in the certificate",
        ):
            budget.check()
        budget._share.close()
    assert not any(received)


def test_threads_share_it(path: str) -> None:
    """Eight threads together get exactly what the bucket and the own token hold."""
    budget = SharedBudget(f"unix://{path}", "threads", capacity=100)
    granted: list[bool] = []
    for _ in range(10):
        budget.put(retried=False)

    def take() -> None:
        granted.extend(budget.take() for _ in range(20))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted.count(True) == 11
    budget._share.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are of POSIX systems")
@pytest.mark.usefixtures("forkable")
def test_a_forked_child_owns_nothing(path: str) -> None:
    """Its credit and its connection are its own, and those of the parent stay as they are."""
    budget = SharedBudget(f"unix://{path}", "fork", capacity=20)
    assert budget.take()
    for _ in range(10):
        budget.put(retried=False)
    answer = budget.ask()
    assert answer is True
    for _ in range(5):
        budget.put(retried=False)
    pending = budget.ask()
    assert not isinstance(pending, bool)
    for _ in range(3):
        budget.put(retried=False)
    assert budget._share.credit.total(0) > 0
    child = os.fork()
    if not child:
        owned = budget._find_share().credit.total(0)
        os._exit(owned == 0 and budget.take() is False)  # the parent took the second token
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert pending.wait(10) is True
    budget._share.close()


def test_a_process_pays_in_at_its_end(path: str) -> None:
    """The credit of a process is in the bucket after a normal end; `pay_in` does the same at any time."""
    code = (
        "import forbear, sys\n"
        "budget = forbear.budgets.SharedBudget(sys.argv[1], 'exit')\n"
        "for _ in range(400): budget.put(retried=False)\n"
    )
    subprocess.run([sys.executable, "-c", code, f"unix://{path}"], check=True)
    with redis.Redis(unix_socket_path=path) as client:
        assert client.hget("{fb:exit}", "tokens") == b"%d" % ((10 + 40) * MICRO)
        budget = SharedBudget(f"unix://{path}", "exit")
        for _ in range(40):
            budget.put(retried=False)
        budget.pay_in()
        assert client.hget("{fb:exit}", "tokens") == b"%d" % ((10 + 44) * MICRO)
    assert budget._share.credit.total(0) == 0
    budget._share.close()


def test_budgets_that_are_gone_leave_nothing_for_the_end(path: str) -> None:
    """A process may unpickle a policy for each task: what happens at its end does not grow."""
    pickled = pickle.dumps(SharedBudget(f"unix://{path}", "gone"))
    gc.collect()
    before = atexit._ncallbacks(), len(budget_module._open)
    for _ in range(10):
        pickle.loads(pickled)
    gc.collect()
    assert (atexit._ncallbacks(), len(budget_module._open)) == before
