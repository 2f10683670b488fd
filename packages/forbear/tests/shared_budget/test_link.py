"""Servers that are down, hung, flushed, read-only, full or mad: no call fails or waits, and the server gets a pause."""

from collections.abc import Callable, Generator
from threading import Event as Signal
from threading import Thread
from threading import enumerate as all_threads

import pytest
from redis import Redis

from forbear.core.events import BudgetDegraded, BudgetRestored, Event
from forbear.run import late_grant
from forbear.shared_budget.budget import SharedBudget
from forbear.testing.valkey import valkey_server
from forbear.testing.virtual_clock import VirtualTime, virtual_time
from forbear_testkit.clients.redis.proxy import CUT, FORWARD, HANG, LOSE, Command, Fate, Seen, in_turn, proxy

IMPATIENT = 0.005
"""The seconds that a call waits for a server which does not answer, as outside of tests."""

FAULTS: dict[str, tuple[Fate, str]] = {
    "closed": (CUT, "the server closed the connection"),
    "response lost": (LOSE, "the server closed the connection"),
    "hung": (HANG, "the server did not answer within 1 s"),
    "read-only": (b"-READONLY You can't write against a read only replica.\r\n", "the script: READONLY"),
    "out of memory": (b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "the script: OOM"),
    "no password": (b"-NOAUTH Authentication required.\r\n", "the script: NOAUTH"),
    "loading": (b"-LOADING Valkey is loading the dataset in memory\r\n", "the script: LOADING"),
    "failed over": (b"-MOVED 7 127.0.0.1:1\r\n", "the script: MOVED"),
    "another protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not of the Redis protocol"),
    "another value": (b"+OK\r\n", "the server sent a response that the script does not send"),
    "two answers": (2 * b"*3\r\n:0\r\n:0\r\n:0\r\n", "the server sent a response to nothing that was sent"),
    "endless": (b"+" + b"x" * 100_000, "not of the Redis protocol"),
    "endless list": (b"*16\r\n" + b"$1023\r\n" + b"x" * 40_000, "not of the Redis protocol"),
}  # fmt: skip


@pytest.fixture(scope="module")
def path() -> Generator[str]:
    """Run one server for all tests of this module."""
    with valkey_server() as running:
        yield running


@pytest.fixture(autouse=True)
def _patient(patient: None) -> None:
    """Give the server as long as it needs."""


def budget_at(seen: Seen, name: str, events: list[Event], **options: float) -> SharedBudget:
    """Return a budget over a proxy, which has an own token, and appends its events to a list."""
    return SharedBudget(f"redis://127.0.0.1:{seen.port}", name, on_event=events.append, **options)


def asked_until(budget: SharedBudget, clock: VirtualTime, is_done: Callable[[], bool]) -> None:
    """Take from the budget, a second apart, until something is so."""
    for _ in range(100):
        if is_done():
            return
        budget.take()
        clock.advance(1)
    raise AssertionError("it never was so")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_and_its_end(path: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One event when the server is lost, silence for a second or more, own credit meanwhile, one event at the end."""
    fate, text = FAULTS[fault]
    fates = [fate] if fate == HANG else [fate, fate]
    events: list[Event] = []
    with proxy(path, in_turn(EVALSHA=fates)) as seen, virtual_time(3) as clock:
        budget = budget_at(seen, f"fault {fault}", events, capacity=20)
        with monkeypatch.context() as patch:
            if fate == HANG:
                patch.setattr(late_grant, "LOOK", IMPATIENT)
            asked_until(budget, clock, lambda: bool(events))
        assert budget._share.sent == 1
        lost = events[0]
        assert isinstance(lost, BudgetDegraded)
        assert text in lost.text
        assert 1 <= lost.pause <= 2
        for _ in range(10):
            budget.put(retried=False)
        assert budget.take() is (budget._share.health.until > clock.elapsed)  # the own token, if it is not a probe's
        while clock.elapsed + 0.1 < budget._share.health.until:
            assert not budget.take()
            clock.advance(0.1)
        assert budget._share.sent == 1
        asked_until(budget, clock, lambda: len(events) > 1)
        budget._share.close()
    assert isinstance(events[1], BudgetRestored)
    assert len(events) == 2
    assert seen.asked.count("EVALSHA") == budget._share.sent  # nothing was repeated: each is an ask of its own


def test_a_server_that_stays_away_is_asked_rarely(path: str) -> None:
    """In ten minutes with ten asks a second it gets a command every three seconds, and there is one event."""
    events: list[Event] = []
    with proxy(path, lambda _: b"-OOM command not allowed\r\n") as seen, virtual_time(5) as clock:
        budget = budget_at(seen, "rare", events)
        for _ in range(6000):
            assert not budget.take()
            clock.advance(0.1)
        assert 150 <= len(seen.asked) <= 260
        assert seen.connections == len(seen.asked)
    assert [type(event) for event in events] == [BudgetDegraded]


def test_a_signal_handler_may_come_back_in_the_middle(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the budget talks to the server, an ask and a success in the same thread neither wait nor do harm."""
    budget = SharedBudget(f"unix://{path}", "again", capacity=20)
    link = budget._share.link
    receive, answers = link.receive, []

    def interrupted() -> list[object]:
        answers.append(budget.ask())
        budget.put(retried=False)
        budget.pay_in()
        return receive()

    monkeypatch.setattr(link, "receive", interrupted)
    assert budget.take()
    assert set(answers) == {False}
    assert budget._share.credit.total(0) == 100_000 * len(answers)
    budget._share.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("unix:///" + "x" * 150, "AF_UNIX path too long"),
        ("unix:///a%00b", "cannot reach unix:///a"),
        ("redis://127.0.0.1:1", "Connection refused"),
        ("redis://[::1]:1", "cannot reach redis://[::1]:1/0"),
    ],
)
def test_an_address_that_cannot_be_reached(url: str, why: str) -> None:
    """The call goes on without a retry, and the event says why."""
    events: list[Event] = []
    assert not SharedBudget(url, "x", on_event=events.append).take()
    assert [type(event) for event in events] == [BudgetDegraded]
    assert why in str(events[0])


def test_a_failure_of_another_kind(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong with the connection, no call fails."""
    events: list[Event] = []
    budget = SharedBudget(f"unix://{path}", "x", on_event=events.append)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    for method in ("send", "receive"):
        with virtual_time() as clock:
            clock.advance(100)
            monkeypatch.setattr(budget._share, "health", type(budget._share.health)(5))
            monkeypatch.setattr(budget._share.link, method, broken)
            assert not budget.take()
            monkeypatch.undo()
    assert ["it failed: ZeroDivisionError" in str(event) for event in events] == [True, True]
    budget._share.close()


def test_one_probe_at_a_time(path: str) -> None:
    """While the first ask after a pause has no answer, no other is sent."""
    fates: list[Fate] = [CUT, HANG]
    events: list[Event] = []

    def script(command: Command) -> Fate:
        return fates.pop(0)

    with proxy(path, script) as seen, virtual_time(3) as clock:
        budget = budget_at(seen, "probe", events)
        assert not budget.take()
        clock.advance(30)
        first, others = budget.ask(), [budget.ask() for _ in range(5)]
        assert not isinstance(first, bool)
        assert others == [False] * 5
        assert first.wait(0.2) is None
        assert budget._share.sent == 2
        budget._share.close()


def test_at_most_one_ask_is_overdue(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a hung server the second call is refused without a wait, and nothing is sent for it."""
    monkeypatch.setattr(late_grant, "LOOK", IMPATIENT)
    with proxy(path, lambda _: HANG) as seen, virtual_time() as clock:
        budget = budget_at(seen, "overdue", [])
        assert not budget.take()
        monkeypatch.setattr(budget._share.link, "wait", None)  # nothing may wait for it now
        assert not any(budget.take() for _ in range(100))
        assert budget._share.sent == 1
        assert clock.elapsed == 0
        budget._share.close()


def test_a_late_grant_becomes_own_credit(path: str) -> None:
    """At most one token; the grants of other asks that are late, too, are given up."""
    budget = SharedBudget(f"unix://{path}", "late", capacity=100)
    first, second = budget.ask(), budget.ask()
    assert not isinstance(first, bool)
    assert not isinstance(second, bool)
    share = budget._share
    with virtual_time():
        first.give_up()
        second.give_up()
        for _ in range(20):
            budget.put(retried=False)
        assert first.wait(10) is True
        assert share.credit.own == 1_000_000
        assert budget.take()
    share.close()


def test_a_refusal_is_remembered(path: str) -> None:
    """For 0.5 to 1.5 seconds nothing is sent, unless the process has earned the retry meanwhile."""
    with proxy(path, lambda _: FORWARD) as seen, virtual_time(1) as clock:
        budget = budget_at(seen, "refused", [], capacity=5)  # its bucket starts with half a token
        while budget.take():
            pass
        sent = len(seen.asked)
        for _ in range(40):
            assert not budget.take()
            clock.advance(0.01)
        assert len(seen.asked) == sent
        for _ in range(30):
            budget.put(retried=False)
        assert [budget.take() for _ in range(4)] == [True, True, True, False]
        assert len(seen.asked) == sent + 3
        clock.advance(1.5)
        assert not budget.take()
        assert len(seen.asked) == sent + 4
        budget._share.close()


def test_real_faults() -> None:
    """A real server that wants a password, is full, becomes a replica, is flushed, and is stopped and started."""
    events: list[Event] = []
    with valkey_server() as path, virtual_time(3) as clock, Redis(unix_socket_path=path, password="hunter2") as admin:
        with Redis(unix_socket_path=path) as first:
            first.config_set("requirepass", "hunter2")
        locked = SharedBudget(f"unix://{path}", "x", on_event=events.append)
        wrong = SharedBudget(f"unix://:hunter3@{path}", "x", on_event=events.append)
        assert not locked.take()
        assert not wrong.take()
        assert "NOAUTH" in str(events[0])
        assert "WRONGPASS" in str(events[1])
        assert "hunter" not in f"{events} {wrong!r} {locked!r}"
        events.clear()
        budget = SharedBudget(f"unix://:hunter2@{path}", "x", on_event=events.append)
        assert budget.take()
        admin.config_set("maxmemory", "1")
        budget.take()
        assert "OOM" in str(events)
        admin.config_set("maxmemory", "0")
        clock.advance(30)
        assert budget.take()
        admin.replicaof("127.0.0.1", "1")
        budget.take()
        assert "READONLY" in str(events)
        admin.replicaof("NO", "ONE")
        clock.advance(30)
        assert budget.take()
        admin.flushall()
        assert [budget.take() for _ in range(11)] == [True] * 10 + [False]  # a tenth of the capacity
        budget._share.close()
    names = [type(event).__name__ for event in events]
    assert names == ["BudgetDegraded", "BudgetRestored"] * 2


def test_a_server_that_stops_and_starts(path: str) -> None:
    """The connection that the old server closed is noticed at the next ask, which goes to the new server."""
    events: list[Event] = []
    with proxy(path, lambda _: FORWARD) as seen:
        budget = budget_at(seen, "restart", events)
        assert budget.take()
        budget._share.link._socket.shutdown(2)  # type: ignore[attr-defined]
        assert budget.take()
        assert seen.connections == 2
        budget._share.close()
    with virtual_time() as clock:
        assert not budget.take()
        clock.advance(30)
        assert not budget.take()
    assert [type(event) for event in events] == [BudgetDegraded]
    assert "cannot reach redis://127.0.0.1:" in str(events)


def test_an_idle_connection_is_opened_anew(path: str) -> None:
    """After half a minute without a command, something between may have dropped it in silence."""
    with proxy(path, lambda _: FORWARD) as seen, virtual_time() as clock:
        budget = budget_at(seen, "idle", [])
        for pause, connections in ((0, 1), (29, 1), (31, 2)):
            clock.advance(pause)
            assert budget.take()
            assert seen.connections == connections
        budget._share.close()


def test_a_client_without_a_timeout_hangs_in_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each probe of a server that hangs would start another thread. They end, and the next probe works again."""
    monkeypatch.setattr(late_grant, "LOOK", IMPATIENT)
    answers = Signal()
    events: list[Event] = []

    class Hanging:
        def execute_command(self, *_: object) -> list[int]:
            answers.wait()
            return [1, 0, 0]

    def threads() -> list[Thread]:
        return [thread for thread in all_threads() if thread.name == "forbear-shared-budget"]

    before = len(threads())
    with virtual_time(3) as clock:
        budget = SharedBudget(Hanging(), "hangs", on_event=events.append)
        for _ in range(200):
            assert not budget.take()
            clock.advance(1)
        assert len(threads()) - before == 3
        assert [type(event) for event in events] == [BudgetDegraded]
        answers.set()
        for thread in threads():
            thread.join(10)
        monkeypatch.setattr(late_grant, "LOOK", 10.0)
        asked_until(budget, clock, lambda: len(events) == 2)
        assert isinstance(events[1], BudgetRestored)
    budget._share.close()


def test_a_host_name_is_looked_up_in_a_thread(path: str) -> None:
    """A name that does not exist degrades the budget, one that does is connected to, by each of its addresses."""
    events: list[Event] = []
    missing = SharedBudget("redis://nowhere.invalid", "x", on_event=events.append)
    with virtual_time() as clock:
        asked_until(missing, clock, lambda: bool(events))
    assert "cannot reach redis://nowhere.invalid:6379/0" in str(events)
    with proxy(path, lambda _: FORWARD) as seen:
        budget = SharedBudget(f"redis://localhost:{seen.port}", "x")
        budget.check()
        answer = budget.ask()
        assert not isinstance(answer, bool)
        assert answer.wait(5) is True
        budget._share.close()
