"""Tokens that botocore fills: all attempts of a run around a call send the same one (counterexamples K1 to K3, K6)."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

import forbear
from forbear.clients.botocore import install
from forbear.run.keys import RepeatRefused
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.aws import LOST
from forbear_testkit.clients.wire import Answer, Wire
from forbear_testkit.run.budgets import ClosedAtFirst
from forbear_testkit.services.aws import operation

OUTER = forbear.retry(on=forbear.transient, attempts=3, timeout=60, retry_exhausted=True)
TRANSACTION: dict[str, Any] = {"TransactItems": [{"Delete": {"TableName": "t", "Key": {"k": {"S": "1"}}}}]}
CALLS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "RunInstances": ("ec2", "run_instances", {"ImageId": "i", "MinCount": 1, "MaxCount": 1}, "ClientToken"),
    "TransactWriteItems": ("dynamodb", "transact_write_items", TRANSACTION, "ClientRequestToken"),
    "CreateSecret": ("secretsmanager", "create_secret", {"Name": "s", "SecretString": "x"}, "ClientRequestToken"),
}


@pytest.fixture(autouse=True)
def time() -> Iterator[Any]:
    """Waits take no time."""
    with virtual_time(seed=7) as clock:
        yield clock


def secrets(server: Wire) -> Any:
    """Return a client of Secrets Manager whose calls have one attempt each."""
    return install(aws.client("secretsmanager", server.url), attempts=1)


def made() -> Answer:
    """Return the success of a CreateSecret."""
    return aws.succeed(operation("secretsmanager", "CreateSecret"))


def tokens(server: Wire) -> list[str]:
    """Return the tokens of the requests of CreateSecret, in their order."""
    return [json.loads(seen.body)["ClientRequestToken"] for seen in server.seen]


def decorate(call: Callable[[], object]) -> object:
    """Call a function with forbear's decorator."""
    return OUTER(call)()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("wrap", [decorate, OUTER.call])
def test_executed_once(name: str, wrap: Callable[[Callable[[], object]], object]) -> None:
    """The second attempt of the function sends the token of the first one, so the service executes the call once."""
    service, method, parameters, token = CALLS[name]
    with Wire(LOST, aws.succeed(operation(service, name))) as server:
        client = install(aws.client(service, server.url), attempts=1)
        wrap(lambda: getattr(client, method)(**parameters))
        first, second = (seen.body.decode() for seen in server.seen)
    assert token in first
    assert first == second


def test_a_session_with_clients_of_several_services() -> None:
    """Each of them has the handler that fills tokens: botocore takes a handler's id only once for a session."""
    session = install(aws.boto3.Session(**aws.CREDENTIALS), attempts=1)
    with Wire(LOST, made()) as server:
        for service in ("ec2", "secretsmanager"):
            client = aws.track(session.client(service, endpoint_url=server.url, config=aws.settings("standard")))
        OUTER.call(lambda: client.create_secret(Name="s", SecretString="x"))
        first, second = tokens(server)
    assert first == second


def test_a_block() -> None:
    """The block form has a run, too."""
    with Wire(LOST, made()) as server:
        client = secrets(server)
        for attempt in OUTER:
            with attempt:
                client.create_secret(Name="s", SecretString="x")
        first, second = tokens(server)
    assert first == second


def test_new_tokens_elsewhere() -> None:
    """Outside of a run each call has its own token, also after a failure; a token of the caller is left alone."""
    with Wire(LOST, made()) as server:
        client = secrets(server)
        with suppress(ConnectionClosedError):
            client.create_secret(Name="s", SecretString="x")
        client.create_secret(Name="s", SecretString="x")
        OUTER.call(lambda: client.create_secret(Name="s", SecretString="x", ClientRequestToken="t" * 40))
        first, second, third = tokens(server)
    assert first != second
    assert third == "t" * 40


def test_what_has_succeeded_is_not_sent_again() -> None:
    """An attempt that fails after the call has succeeded is not followed by a second execution (K3)."""

    def work() -> None:
        client.create_secret(Name="s", SecretString="x")
        raise ConnectionError("later")

    with Wire(made()) as server:
        client = secrets(server)
        with pytest.raises(ConnectionError, match="later") as caught:
            OUTER.call(work)
        assert len(server.seen) == 1
    assert "secretsmanager.CreateSecret" in caught.value.__notes__[0]


def test_other_parameters_in_the_second_attempt() -> None:
    """A call that asks for something else than the one in doubt is not sent (K2)."""
    names = iter(["order-1", "order-2"])
    with Wire(LOST, made()) as server:
        client = secrets(server)
        with pytest.raises(RepeatRefused, match="this one may be the same") as caught:
            OUTER.call(lambda: client.create_secret(Name=next(names), SecretString="x"))
        assert len(server.seen) == 1
    assert forbear.report(caught.value) is not None  # which stops policies around this one, too


def test_files_equal_nothing() -> None:
    """A parameter whose content cannot be told makes a call that equals no other."""
    value = bytearray(b"x")
    with Wire(LOST, made()) as server:
        client = secrets(server)
        with pytest.raises(RepeatRefused):
            OUTER.call(lambda: client.create_secret(Name="s", SecretBinary=value))
        assert len(server.seen) == 1


def test_tokens_are_found_by_the_request() -> None:
    """In another order, each call still has its own token; of equal calls, the first one has the first token (K1)."""
    orders = iter([["a", "b", "b"], ["b", "a", "b"]])

    def work() -> None:
        lost: Exception | None = None
        for name in next(orders):
            try:
                client.create_secret(Name=name, SecretString="x")
            except ConnectionClosedError as error:
                lost = error
        if lost is not None:
            raise lost

    with Wire(LOST, LOST, LOST, made()) as server:
        client = secrets(server)
        OUTER.call(work)
        first_a, first_b, other_b, b, a, last_b = tokens(server)
    assert (a, b, last_b) == (first_a, first_b, other_b)
    assert len({a, b, last_b}) == 3


def test_each_client_has_its_own() -> None:
    """Equal calls of two clients, as in two regions, do not take each other's tokens."""
    order = iter([(0, 1), (1, 0)])

    def work() -> None:
        lost: Exception | None = None
        for number in next(order):
            try:
                clients[number].create_secret(Name="s", SecretString="x")
            except ConnectionClosedError as error:
                lost = error
        if lost is not None:
            raise lost

    with Wire(LOST, made()) as one, Wire(LOST, made()) as two:
        clients = [secrets(one), secrets(two)]
        OUTER.call(work)
        assert len(set(tokens(one))) == len(set(tokens(two))) == 1
        assert tokens(one) != tokens(two)


def test_calls_of_other_runs_within_one_attempt() -> None:
    """Two functions with runs of their own are two calls, although they ask for the same in one run around both."""

    def work() -> None:
        for _ in range(2):
            with suppress(ConnectionClosedError):
                inner.call(lambda: client.create_secret(Name="s", SecretString="x"))

    inner = forbear.retry(on=forbear.transient, attempts=1)
    with Wire(LOST, made()) as server:
        client = secrets(server)
        OUTER.call(work)
        first, second = tokens(server)
    assert first != second


def test_nested_runs() -> None:
    """An inner function that is repeated within one attempt of the outer one keeps its token."""
    with Wire(LOST, made()) as server:
        client = secrets(server)
        OUTER.call(lambda: OUTER.call(lambda: client.create_secret(Name="s", SecretString="x")))
        first, second = tokens(server)
    assert first == second


def test_a_call_that_the_service_refused_is_in_no_doubt() -> None:
    """After an error of the caller, the next attempt may ask for something else."""
    names = iter(["order-1", "order-2"])
    refused = aws.fail(operation("secretsmanager", "CreateSecret"), 400, "InvalidParameterException")
    with Wire(refused, made()) as server:
        client = secrets(server)
        outer = forbear.retry(on=client.exceptions.InvalidParameterException, attempts=2, repeatable=True)
        outer.call(lambda: client.create_secret(Name=next(names), SecretString="x"))
        assert len(server.seen) == 2


def test_a_doubt_lasts() -> None:
    """A call that was in doubt stays so, although the next attempt could not even connect."""

    def refuse(request: Any, **_: Any) -> None:
        raise EndpointConnectionError(endpoint_url=request.url)

    def work() -> None:
        if next(steps) == "refused":
            client.meta.events.register("before-send", refuse, unique_id="refuse")
        else:
            client.meta.events.unregister("before-send", unique_id="refuse")
        client.create_secret(Name="s", SecretString="x")

    steps = iter(["lost", "refused", "made"])
    with Wire(LOST, made()) as server:
        client = secrets(server)
        OUTER.call(work)
        first, second = tokens(server)
    assert first == second


def test_signed_addresses() -> None:
    """A URL that is signed beforehand is no call: it takes no token, and does not stop the run."""

    def work() -> None:
        for name in next(names):
            client.generate_presigned_url("create_secret", {"Name": name})
        client.describe_secret(SecretId="s")

    names = iter([["a"], ["b"]])
    with Wire(LOST, aws.succeed(operation("secretsmanager", "DescribeSecret"))) as server:
        client = secrets(server)
        OUTER.call(work)
        assert len(server.seen) == 2


def test_a_token_that_may_be_forgotten(time: Any) -> None:
    """After nine tenths of the ten minutes for which DynamoDB remembers it, a transaction is not sent again (K6)."""

    def work() -> None:
        if server.seen:
            time.advance(550)
        client.transact_write_items(**TRANSACTION)

    with Wire(LOST, aws.succeed(operation("dynamodb", "TransactWriteItems"))) as server:
        client = install(aws.client("dynamodb", server.url), attempts=1)
        outer = forbear.retry(on=forbear.transient, attempts=3, timeout=None, retry_exhausted=True, repeatable=True)
        with pytest.raises(RepeatRefused, match="its key has expired"):
            outer.call(work)
        assert len(server.seen) == 1


@pytest.mark.parametrize(("later", "requests"), [(100, 4), (300, 3)])
def test_a_token_counts_from_its_first_use(time: Any, later: int, requests: int) -> None:
    """A call whose token an earlier attempt has sent is repeated only while the service knows it: 10 minutes (K6)."""

    def work() -> None:
        try:
            client.transact_write_items(**TRANSACTION)
        finally:
            time.advance(later)

    slow = Answer(end="reset", first=lambda: time.advance(300))
    with Wire(LOST, LOST, slow, aws.succeed(operation("dynamodb", "TransactWriteItems"))) as server:
        client = install(aws.client("dynamodb", server.url), attempts=2, timeout=2000)
        with suppress(ConnectionClosedError):
            forbear.retry(on=forbear.transient, attempts=2, timeout=500, retry_exhausted=True).call(work)
        assert len(server.seen) == requests


def test_a_refused_first_attempt_has_used_no_token() -> None:
    """A refusal of the budget sends nothing: the next attempt of the function may ask for something else."""
    names = iter(["a", "b"])
    policy = forbear.retry(on=forbear.Throttled, attempts=2, retry_exhausted=True)
    with Wire(made()) as server:
        budget = forbear.budgets.Budget(ClosedAtFirst(10))
        client = install(aws.client("secretsmanager", server.url), attempts=1, budget=budget)
        policy.call(lambda: client.create_secret(Name=next(names), SecretString="x"))
    assert [json.loads(seen.body)["Name"] for seen in server.seen] == ["b"]
