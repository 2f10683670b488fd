"""`on_result` of all clients: it sees the responses of pipelines, and only its verdicts count if one is an error."""

from collections.abc import Callable
from typing import Any

import pytest

import forbear
from forbear.core.verdict import PERMANENT, TRANSIENT
from forbear_testkit.clients.redis.clusters import CLUSTERS, LOADING, WITH_TRANSACTIONS, open_with
from forbear_testkit.clients.redis.flavours import AT_ONCE, Flavour
from forbear_testkit.clients.redis.nodes import HERE, THERE, proxied
from forbear_testkit.clients.redis.proxy import in_turn, once, proxy


class Judge:
    """An `on_result` that refuses lists with None as often as it says, and keeps the lists that it saw."""

    def __init__(self, refusals: int = 1) -> None:
        self.left = refusals
        self.seen: list[Any] = []

    def __call__(self, value: Any) -> bool:
        """Return whether to refuse a value."""
        if not isinstance(value, list):
            return False
        self.seen.append(value)
        refused = None in value and self.left > 0
        self.left -= refused
        return refused

    def take(self) -> list[Any]:
        """Return the lists seen since the last time, and refuse the next one again."""
        self.left = 1
        seen, self.seen = self.seen, []
        return seen


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_a_pipeline_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """Its responses are judged together, once failed commands were sent again; then it is sent again as a whole."""
    judge, events = Judge(), list[forbear.events.Event]()
    policy = AT_ONCE.with_attempts(3).with_on_result(judge).with_on_event(events.append)
    with (
        proxied(nodes, once(), in_turn(STRLEN=[LOADING])) as (seen, options),
        open_with(cluster, options, policy=policy) as session,
    ):
        assert session.execute([("SET", HERE, 1), ("GET", THERE)]) == [True, None]
        assert judge.take() == [[True, None]] * 2
        assert session.execute([("INCRBY", HERE, 1), ("GET", THERE)]) == [2, None]  # INCRBY is not sent again
        assert judge.take() == [[2, None]]
        assert session.execute([("SET", HERE, 1), ("STRLEN", THERE)]) == [True, 0]  # one command was sent again
        assert judge.take() == [[True, 0]]
        judge.left = 99
        assert session.execute([("GET", THERE)]) == [None]
        assert judge.take() == [[None]] * 3
    assert [there.executed.count("GET") for there in seen] == [0, 6]
    assert isinstance(events[-1], forbear.events.GaveUp)


@pytest.mark.parametrize("cluster", WITH_TRANSACTIONS, ids=lambda flavour: flavour.name)
def test_a_transaction_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The responses of EXEC are judged together, too."""
    judge = Judge()
    with (
        proxied(nodes, once(), once()) as (seen, options),
        open_with(cluster, options, policy=AT_ONCE.with_on_result(judge)) as session,
    ):
        assert session.execute([("GET", HERE)], transaction=True) == [None]
    assert judge.take() == [[None]] * 2
    assert seen[0].executed.count("EXEC") == 2


def raising() -> bool:
    """An answer that is no answer."""
    raise LookupError


ANSWERS: list[tuple[Callable[[], Any], int]] = [
    (lambda: True, 3),
    (lambda: 0.0, 3),
    (lambda: False, 1),
    (raising, 1),
    (lambda: PERMANENT, 1),
    (lambda: TRANSIENT.replace(delay=0), 3),
]
"""Answers to a list with an error in it, and how often the pipeline is then sent."""


class Changing:
    """An `on_result` whose answer to lists changes; it accepts anything else."""

    def __init__(self) -> None:
        self.answer: Callable[[], Any] = raising

    def __call__(self, value: Any) -> Any:
        """Return the answer."""
        return self.answer() if isinstance(value, list) else False


def failing(pipe: Any) -> Any:
    """Execute a pipeline of which one command fails for good, and return its responses."""
    return pipe.set(HERE, "1").llen(HERE).execute(raise_on_error=False)


def test_errors_among_the_responses(flavour: Flavour, path: str) -> None:
    """`on_result` judges them as it judges values, and what it raises is no opinion: it was written for successes."""
    judge = Changing()
    policy = AT_ONCE.with_attempts(3).with_on_result(judge)
    with proxy(path, once()) as seen, flavour.connect(seen.port, policy=policy) as session:
        for judge.answer, sent in ANSWERS:
            done, error = session.run(lambda client: failing(client.pipeline(transaction=False)))
            assert done is True
            assert isinstance(error, flavour.errors.ResponseError)
            assert seen.executed.count("LLEN") == sent
            seen.executed.clear()


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda flavour: flavour.name)
def test_errors_among_the_responses_on_a_cluster(cluster: Flavour, nodes: tuple[int, ...]) -> None:
    """The same on a cluster."""
    judge = Changing()
    policy = AT_ONCE.with_attempts(3).with_on_result(judge)
    with proxied(nodes, once(), once()) as (seen, options), open_with(cluster, options, policy=policy) as session:
        for judge.answer, sent in ANSWERS:
            done, error = session.run(lambda client: failing(client.pipeline()))
            assert done is True
            assert isinstance(error, cluster.errors.ResponseError)
            assert seen[0].executed.count("LLEN") == sent
            seen[0].executed.clear()
