"""Facts in the errors of data clients: commands of Redis, calls of AWS, RPCs, statements of SQL."""

import asyncio
import socket
import warnings
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import boto3
import botocore.config
import pytest
import redis
import redis.asyncio
import sqlalchemy
import valkey
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from forbear.evidence import read
from forbear.evidence.sent import AwsCall, Sent, Statement
from forbear.grpc.call import GrpcCall
from forbear_testkit.clients.listen import listening


def shown(function: Callable[[], object]) -> tuple[Sent, ...]:
    """Return the requests that the error of a function shows."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any client's error
        function()
    evidence = read(caught.value)
    return () if evidence is None else evidence.requests


@pytest.fixture
def mute() -> Generator[int]:
    """The port of a server that reads what is sent, and hangs up."""

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.close()

    with listening(talk) as port:
        yield port


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port where nobody listens; it stays bound, so that no other test gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def options(port: int) -> Any:
    """Return the options of a client without retries."""
    return {"port": port, "protocol": 2, "retry": Retry(NoBackoff(), 0), "lib_name": None, "lib_version": None}


def client(port: int) -> Any:
    """Return a client that sends nothing but its commands, and does not retry."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of an argument that says not to introduce the client
        return redis.Redis(**options(port))


def test_a_command(mute: int, nobody: int) -> None:
    """The words of a command are shown, and whether a connection was there."""
    (sent,) = shown(lambda: client(mute).incr("n"))
    assert (sent.client, sent.method, sent.subject, sent.unsent) == (
        "redis",
        "INCRBY",
        ((("INCRBY", "n", 1),), False),
        False,
    )
    (sent,) = shown(lambda: client(nobody).incr("n"))
    assert (sent.method, sent.unsent) == ("INCRBY", True)


def test_a_command_of_valkey(mute: int) -> None:
    """valkey-py shows the same."""
    (sent,) = shown(lambda: valkey.Valkey(**options(mute) | {"retry": None}).incr("n"))
    assert (sent.client, sent.method) == ("valkey", "INCRBY")


@pytest.mark.parametrize("transaction", [True, False])
def test_e3_a_pipeline(transaction: bool, mute: int) -> None:
    """E3: a pipeline has no frame of `execute_command`, but its commands are known."""

    def send() -> None:
        pipeline = client(mute).pipeline(transaction=transaction)
        pipeline.set("a", 1).incr("n").execute()

    (sent,) = shown(send)
    assert sent.subject == ((("SET", "a", 1), ("INCRBY", "n", 1)), transaction)


def test_commands_of_asyncio(mute: int) -> None:
    """The asyncio twins show the same, in a pipeline, too."""

    async def send(*, together: bool) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            again: Any = AsyncRetry(NoBackoff(), 0)
            here: Any = redis.asyncio.Redis(**options(mute) | {"retry": again})
        if together:
            await here.pipeline(transaction=False).incr("n").execute()
        else:
            await here.incr("n")

    assert [sent.method for sent in shown(lambda: asyncio.run(send(together=False)))] == ["INCRBY"]
    assert [sent.subject for sent in shown(lambda: asyncio.run(send(together=True)))] == [
        ((("INCRBY", "n", 1),), False)
    ]


def dynamodb(port: int) -> Any:
    """Return a client of DynamoDB that does not retry."""
    return boto3.client(
        "dynamodb",
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        endpoint_url=f"http://127.0.0.1:{port}",
        config=botocore.config.Config(retries={"total_max_attempts": 1}),
    )


def test_e3_a_call_of_aws(mute: int, nobody: int) -> None:
    """E3: an error of the connection names no operation, but the variables of the call do."""
    (sent,) = shown(lambda: dynamodb(mute).get_item(TableName="orders", Key={"k": {"S": "1"}}))
    call = sent.subject
    assert isinstance(call, AwsCall)
    assert (call.operation, call.model.name, sent.unsent is True) == ("dynamodb.GetItem", "GetItem", False)
    assert call.parameters["TableName"] == "orders"
    (sent,) = shown(lambda: dynamodb(nobody).get_item(TableName="orders", Key={"k": {"S": "1"}}))
    assert (sent.method, sent.unsent) == ("dynamodb.GetItem", True)


def test_an_rpc(nobody: int) -> None:
    """A unary call shows method and request, a stream its method."""
    grpc: Any = pytest.importorskip("grpc")
    with grpc.insecure_channel(f"127.0.0.1:{nobody}") as channel:
        unary, stream = channel.unary_unary("/shop.Orders/Create"), channel.unary_stream("/shop.Orders/List")
        (sent,) = shown(lambda: unary(b"order", timeout=0.2))
        assert (sent.method, sent.subject) == ("shop.Orders/Create", GrpcCall("shop.Orders/Create", b"order"))
        assert {sent.method for sent in shown(lambda: list(stream(b"", timeout=0.2)))} == {"shop.Orders/List"}


def test_an_rpc_of_asyncio(nobody: int) -> None:
    """A call that is awaited keeps no method; the type of its message tells it, or it cannot be read."""
    grpc: Any = pytest.importorskip("grpc.aio")
    iam_policy_pb2: Any = pytest.importorskip("google.iam.v1.iam_policy_pb2")

    async def send(message: Any, serializer: Any) -> None:
        async with grpc.insecure_channel(f"127.0.0.1:{nobody}") as channel:
            await channel.unary_unary("/google.iam.v1.IAMPolicy/SetIamPolicy", request_serializer=serializer)(
                message, timeout=0.2
            )

    request = iam_policy_pb2.SetIamPolicyRequest(resource="r")
    (sent,) = shown(lambda: asyncio.run(send(request, iam_policy_pb2.SetIamPolicyRequest.SerializeToString)))
    assert (sent.method, sent.unread) == ("google.iam.v1.IAMPolicy/SetIamPolicy", None)
    (sent,) = shown(lambda: asyncio.run(send(b"", None)))
    assert (sent.method, sent.unread) == ("", "grpc does not keep the name of the RPC")


def test_a_statement_of_sqlalchemy() -> None:
    """The statement is an attribute; whether it commits by itself is the connection's."""
    engine = sqlalchemy.create_engine("sqlite://")

    def insert(**execution: Any) -> None:
        with engine.connect().execution_options(**execution) as connection:
            connection.exec_driver_sql("insert into missing values (1)")

    for execution, autocommit in (({}, False), ({"isolation_level": "AUTOCOMMIT"}, True)):
        (sent,) = shown(partial(insert, **execution))
        statement = sent.subject
        assert isinstance(statement, Statement)
        assert (sent.method, statement.text, statement.autocommit) == (
            "INSERT", "insert into missing values (1)", autocommit,
        )  # fmt: skip
    engine.dispose()


def test_e2_a_commit_of_sqlalchemy() -> None:
    """E2: at COMMIT there is no statement; the frames show it."""
    engine = sqlalchemy.create_engine("sqlite://", future=True)  # as in 2.0 by default
    with engine.begin() as connection:
        connection.exec_driver_sql("create table p (id integer primary key)")
        connection.exec_driver_sql("create table c (p integer references p(id) deferrable initially deferred)")

    def commit() -> None:
        with engine.connect() as connection:
            connection.exec_driver_sql("pragma foreign_keys = on")
            connection.commit()
            connection.exec_driver_sql("insert into c values (1)")
            connection.commit()

    (sent,) = shown(commit)
    assert sent.method == "COMMIT"
    engine.dispose()
