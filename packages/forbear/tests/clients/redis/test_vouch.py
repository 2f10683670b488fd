"""`safe=` of all clients: commands that the user vouches for are repeated after a lost response."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

import forbear
from forbear.core.report import report
from forbear_testkit.clients.redis.clusters import CLUSTERS, WITH_TRANSACTIONS, open_with
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour, Session
from forbear_testkit.clients.redis.nodes import HERE, THERE, proxied
from forbear_testkit.clients.redis.proxy import LOSE, in_turn, once, proxy

INCR = ("INCRBY", "k", 1)


@contextmanager
def losing(flavour: Flavour, path: str, safe: Any, *commands: str) -> Generator[Session]:
    """A client with a vouch, behind a proxy that loses the first response to each of these commands."""
    with (
        proxy(path, once(**dict.fromkeys(commands, LOSE))) as seen,
        flavour.connect(seen.port, safe=safe) as session,
    ):
        yield session


@pytest.mark.parametrize("safe", ["INCR", "incrby", ["LPUSH", "INCRBY"]], ids=str)
def test_a_command(flavour: Flavour, path: str, safe: Any) -> None:
    """It is executed twice, as the user said it may be; others are not."""
    with losing(flavour, path, safe, "INCRBY", "APPEND") as session:
        assert session("incr", "k") == 2
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session("append", "a", "x")
        assert session("get", "a") == b"x"
    assert caught.value.__notes__[0].endswith(
        "APPEND may have been executed and must not be executed twice; "
        'if that does no harm, vouch for it with safe="APPEND" [unsafe]'
    )


def test_the_cure_of_incr(flavour: Flavour, path: str) -> None:
    """The note names the command that the library sends, and pasting it helps."""
    with losing(flavour, path, (), "INCRBY") as session, pytest.raises(flavour.errors.ConnectionError) as caught:
        session("incr", "k", 3)
    cure = caught.value.__notes__[0].rpartition("with safe=")[2].split('"')[1]
    with losing(flavour, path, cure, "INCRBY") as session:
        assert session("incr", "other", 3) == 6


@pytest.mark.parametrize("transaction", [True, False], ids=["transaction", "plain"])
def test_a_pipeline(flavour: Flavour, path: str, transaction: bool) -> None:
    """It is repeated if all its commands may be, by the table or by the user's word."""
    with losing(flavour, path, "INCR", "GET") as session:
        assert session.execute([INCR, ("GET", "k")], transaction=transaction)[-1] in (b"1", b"2")
    with losing(flavour, path, "INCR", "GET") as session:
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session.execute([INCR, ("LPUSH", "l", "x"), ("GET", "k")], transaction=transaction)
        assert session("llen", "l") in (0, 1)
    result = report(caught.value)
    assert result is not None
    assert result.text.endswith('if that does no harm, vouch for it with safe="LPUSH"')


def test_commands_that_depend_on_each_other(flavour: Flavour, path: str) -> None:
    """A vouch is about a command by itself: what LMOVE moves depends on the LPUSH beside it."""
    commands = [("LPUSH", "a", "x"), ("LMOVE", "a", "b", "LEFT", "LEFT"), ("GET", "k")]
    with losing(flavour, path, ["LPUSH", "LMOVE"], "GET") as session:
        with pytest.raises(flavour.errors.ConnectionError) as caught:
            session.execute(commands, transaction=False)
        assert session("llen", "b") <= 1
    assert caught.value.__notes__[0].endswith(
        "LMOVE may have been executed; its outcome depends on what another command sent with it changes [unsafe]"
    )


def test_an_exec_under_watch_is_executed_once(flavour: Flavour, path: str) -> None:
    """The values read under WATCH may be out of date, whatever the user says of the commands."""

    def run(pipe: Any) -> Any:
        pipe.multi()
        pipe.incr("k")

    with losing(flavour, path, "INCR", "EXEC") as session:
        with pytest.raises(flavour.errors.ConnectionError):
            session("transaction", run, "k")
        assert session("get", "k") == b"1"


def test_a_command_at_once_under_watch(flavour: Flavour, path: str) -> None:
    """A cycle begins again after a lost command that the user vouches for."""

    def run(pipe: Any) -> Any:
        value = pipe.incr("k")
        pipe.multi()
        pipe.set("done", "1")
        return value

    with losing(flavour, path, "INCR", "INCRBY") as session:
        if flavour.is_async:

            async def arun(pipe: Any) -> None:
                await pipe.incr("k")
                pipe.multi()
                pipe.set("done", "1")

            session("transaction", arun, "w")
        else:
            session("transaction", run, "w")
        assert session("get", "k") == b"2"


def test_every_way_to_make_a_client(flavour: Flavour, path: str) -> None:
    """The vouch comes along."""
    with proxy(path, in_turn(INCRBY=[LOSE, "forward", LOSE])) as seen:
        url = f"{flavour.errors.__name__}://127.0.0.1:{seen.port}"
        with flavour.session(lambda: flavour.ours.from_url(url, policy=AT_ONCE, safe="INCR")) as session:
            assert session("incr", "k") == 2
            one = session.client.client()
            assert one.settings.safe == {"INCR"}
            session.run(lambda _: one.aclose() if flavour.is_async else one.close())

        def from_pool() -> Any:
            pool = flavour.stock.from_url(url, retry=flavour.no_retry()).connection_pool
            return flavour.ours.from_pool(pool, policy=AT_ONCE, safe=["INCR"])

        with flavour.session(from_pool) as session:
            assert session("incr", "k") == 4


def test_wrong_names_are_refused(flavour: Flavour) -> None:
    """The client is not made."""
    for options, words in (
        ({"safe": "INCRR"}, 'is it "INCR"'),
        ({"safe": ["EXEC"]}, "must not list EXEC"),
        ({"safe": "INCR", "policy": None}, "`safe` must be left out with policy=None"),
    ):
        with pytest.raises(ValueError, match=words):
            flavour.ours(**options)
        with pytest.raises(ValueError, match=words):
            flavour.ours.from_url(f"{flavour.errors.__name__}://localhost", **options)
    with pytest.raises(TypeError, match="`safe` must be the name"):
        flavour.ours(safe=7)


def test_a_policy_that_never_repeats_doubt(flavour: Flavour, path: str) -> None:
    """It has the last word."""
    policy = forbear.retry(on=flavour.errors.ConnectionError, repeatable=False)
    with (
        proxy(path, once(INCRBY=LOSE)) as seen,
        flavour.connect(seen.port, policy=policy, safe="INCR") as session,
        pytest.raises(flavour.errors.ConnectionError),
    ):
        session("incr", "k")


def test_reports_say_that_the_policy_called_it_harmless(flavour: Flavour, path: str) -> None:
    """A verdict NOT_EXECUTED of `on` or `on_result` is the user's word, as `safe` is."""
    events: list[forbear.events.Event] = []

    def harmless(_: object) -> forbear.verdicts.Verdict:
        return forbear.verdicts.NOT_EXECUTED if not events else forbear.verdicts.PERMANENT

    for policy, script in ((AT_ONCE.with_on(harmless), {"INCRBY": LOSE}), (AT_ONCE.with_on_result(harmless), {})):
        events.clear()
        judged = policy.with_on_event(events.append)
        with proxy(path, once(**script)) as seen, flavour.connect(seen.port, policy=judged) as session:
            session("incr", "k")
        assert [event.vouched for event in events if isinstance(event, forbear.events.Scheduled)] == [True]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """Single commands, and those of a pipeline that were lost."""
    scripts = in_turn(INCRBY=[LOSE]), in_turn(INCRBY=[LOSE])
    with proxied(nodes, *scripts) as (seen, options), open_with(cluster, options, safe="INCR") as session:
        assert session("incr", HERE) == 2
        assert session.execute([("INCRBY", THERE, 1), ("GET", THERE)])[0] == 2
    assert [there.executed.count("INCRBY") for there in seen] == [2, 2]


@pytest.mark.parametrize("cluster", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)
def test_a_transaction_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """It is repeated as a whole."""
    with (
        proxied(nodes, once(EXEC=LOSE), once()) as (_, options),
        open_with(cluster, options, safe="INCR") as session,
    ):
        assert session.execute([("INCRBY", HERE, 1)], transaction=True) == [2]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_a_url_of_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """`from_url` takes the vouch, too, and refuses wrong names."""
    url = f"{cluster.errors.__name__}://127.0.0.1:{nodes[0]}"
    with cluster.session(lambda: cluster.ours.from_url(url, policy=AT_ONCE, safe="INCR")) as session:
        assert session.client.settings.safe == {"INCR"}
        assert session("incr", HERE) == 1
    with pytest.raises(ValueError, match='is it "INCR"'):
        cluster.ours.from_url(url, safe="INCRR")
