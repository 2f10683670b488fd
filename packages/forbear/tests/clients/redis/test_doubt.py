"""A command that may have been executed is not repeated by an outer run, whatever a user's function raises."""

from collections.abc import Callable
from typing import Any

import pytest

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, Session
from forbear_testkit.clients.redis.proxy import FORWARD, LOSE, Command, Fate, proxy

OUTER = forbear.retry(on=Exception, attempts=3, backoff=forbear.Constant(0))


def _fail(*things: object) -> Any:
    raise KeyError("of the user's own function")


JUDGES = {
    "on": AT_ONCE.with_on(_fail).replace(service=None),
    "delay": AT_ONCE.replace(delay=_fail),
    "on_result": AT_ONCE.with_on_result(_fail),
}


def _losing(command: Command) -> Fate:
    return LOSE if command[0] == b"LPUSH" else FORWARD


def _forwarding(command: object) -> Any:
    return FORWARD


def _push(session: Session) -> object:
    return session("lpush", "k", 1)


def _in_a_pipeline(session: Session) -> object:
    return session.execute([("SET", "a", 1), ("LPUSH", "k", 1)])


@pytest.mark.parametrize("send", [_push, _in_a_pipeline])
@pytest.mark.parametrize("name", JUDGES)
def test_a_judge_that_raises(flavour: Flavour, path: str, name: str, send: Callable[[Session], object]) -> None:
    """The client's error is raised, or that of the judge where there is none; both stop outer runs."""
    script = _forwarding if name == "on_result" else _losing
    with proxy(path, script) as seen, flavour.connect(seen.port, policy=JUDGES[name]) as session:
        with virtual_time(), pytest.raises((KeyError, flavour.errors.ConnectionError)) as caught:
            OUTER.call(send, session)
        assert isinstance(caught.value, KeyError) is (name == "on_result")
        assert seen.executed.count("LPUSH") == 1
    found = forbear.report(caught.value)
    assert found is not None
    assert found.reason is forbear.events.Reason.UNSAFE


@pytest.mark.parametrize("name", ["delay", "on_result"])
def test_a_judge_that_raises_after_a_read(flavour: Flavour, path: str, name: str) -> None:
    """A read is repeated as often as the outer policy likes, whatever the judge of the inner one raises."""
    script = _forwarding if name == "on_result" else _reads_lost
    with proxy(path, script) as seen, flavour.connect(seen.port, policy=JUDGES[name]) as session:
        with virtual_time(), pytest.raises((KeyError, flavour.errors.ConnectionError)) as caught:
            OUTER.call(session, "get", "k")
        assert isinstance(caught.value, KeyError) is (name == "on_result")
        assert seen.executed.count("GET") == 3


def _reads_lost(command: Command) -> Fate:
    return LOSE if command[0] == b"GET" else FORWARD


def test_a_new_error(flavour: Flavour, path: str) -> None:
    """An error raised while the client's is handled carries its report."""

    def work(session: Session) -> None:
        try:
            _push(session)
        except flavour.errors.ConnectionError:
            raise LookupError from None

    with proxy(path, _losing) as seen, flavour.connect(seen.port) as session:
        with virtual_time(), pytest.raises(LookupError) as caught:
            OUTER.call(work, session)
        assert seen.executed.count("LPUSH") == 1
    assert forbear.report(caught.value) is not None
