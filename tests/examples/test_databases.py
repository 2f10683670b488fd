"""The examples for databases and queues: SQLAlchemy, DynamoDB and Kafka."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Seen
from forbear_testkit.examples.load import load
from forbear_testkit.examples.service import LOST, Service, as_json


@contextmanager
def _bank(*commits: str) -> Generator[Any]:
    """Yield an engine with two accounts, whose next COMMITs end as PostgreSQL's may: "40001" or "lost"."""
    from psycopg import OperationalError
    from psycopg.errors import SerializationFailure
    from sqlalchemy import create_engine, event, exc, text
    from sqlalchemy.pool import StaticPool

    script = list(commits)
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as database:
        database.execute(text("CREATE TABLE accounts (owner TEXT PRIMARY KEY, cents INTEGER)"))
        database.execute(text("CREATE TABLE transfers (number TEXT PRIMARY KEY)"))
        database.execute(text("INSERT INTO accounts VALUES ('ada', 100), ('grace', 100)"))

    @event.listens_for(engine, "commit")
    def on_commit(connection: Any) -> None:
        fate = script.pop(0) if script else ""
        if fate == "40001":
            error: Exception = SerializationFailure("could not serialize access")
        elif fate == "lost":
            connection.connection.dbapi_connection.commit()
            error = OperationalError("server closed the connection unexpectedly")
        else:
            return
        raise exc.OperationalError("COMMIT", None, error)

    yield engine
    engine.dispose()


def _accounts(engine: Any) -> dict[str, int]:
    from sqlalchemy import text

    with engine.connect() as database:
        rows = database.execute(text("SELECT owner, cents FROM accounts")).all()
        return {row.owner: row.cents for row in rows}


def test_a_transfer_happens_once() -> None:
    """After two failed serializations and a lost COMMIT, the money has moved once."""
    program = load("sqlalchemy_transfer")
    with _bank("40001", "40001", "lost") as engine, virtual_time() as time:
        program.transfer(engine, "7", "ada", "grace", 30)
        assert len(time.slept) == 3
        assert _accounts(engine) == {"ada": 70, "grace": 130}


def test_a_deposit_is_not_repeated_in_doubt() -> None:
    """A transaction without a number begins again after a failed serialization, but not after a lost COMMIT."""
    program = load("sqlalchemy_transfer")
    with _bank("40001", "lost") as engine, virtual_time() as time:
        with pytest.raises(Exception, match="closed the connection") as raised:
            program.deposit(engine, "ada", 30)
        assert len(time.slept) == 1
        assert _accounts(engine) == {"ada": 130, "grace": 100}
    assert "may have been executed" in raised.value.__notes__[0]


class Seats:
    """A table of DynamoDB with conditional writes."""

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}

    def __call__(self, request: Seen) -> object:
        """Execute PutItem or GetItem."""
        call = json.loads(request.body)
        if request.header("x-amz-target") == "DynamoDB_20120810.GetItem":
            return {"Item": self.items[call["Key"]["seat"]["S"]]}
        if self.items.setdefault(call["Item"]["seat"]["S"], call["Item"]) is not call["Item"]:
            return _refusal(400, "ConditionalCheckFailedException")
        return {}


def _refusal(status: int, code: str) -> Answer:
    return as_json({"__type": f"com.amazonaws.dynamodb.v20120810#{code}"}, status)


def test_a_seat_is_reserved_once() -> None:
    """Behind throttling, a server error and a lost response, the first caller gets the seat and the second does not."""
    program, seats = load("boto3_seats"), Seats()
    with Service(seats) as service, virtual_time() as time:
        client = program.connect(
            endpoint_url=service.url, region_name="eu", aws_access_key_id="none", aws_secret_access_key="none"
        )
        service.fail(_refusal(400, "ThrottlingException"), _refusal(500, "InternalServerError"), LOST)
        assert program.reserve(client, "12A", "ada")
        assert len(time.slept) == 3
        assert not program.reserve(client, "12A", "grace")
        client.close()
    assert {seat: item["holder"]["S"] for seat, item in seats.items.items()} == {"12A": "ada"}
    assert len(service.seen) == 4 + 1 + 2


def test_orders_are_written_once() -> None:
    """Commits that time out are resumed; a consumer reads every order once."""
    from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

    program = load("kafka_orders")
    # librdkafka's own brokers, on loopback; one round trip takes longer than an attempt to commit.
    cluster = {"bootstrap.servers": "none.invalid", "test.mock.num.brokers": 1, "test.mock.broker.rtt": 50}
    producer = Producer(cluster | {"transactional.id": "test", "log_level": 0})
    producer.init_transactions(30)
    with virtual_time() as time:
        program.publish(producer, ["tea", "salt"], patience=0.05)
        program.publish(producer, ["rice"], patience=0.05)
    assert len(time.slept) >= 2
    broker = producer.list_topics(timeout=30).brokers[1]
    settings = {"bootstrap.servers": f"{broker.host}:{broker.port}", "group.id": "test", "enable.partition.eof": True}
    consumer = Consumer(settings | {"isolation.level": "read_committed", "fetch.wait.max.ms": 10, "log_level": 0})
    partitions = producer.list_topics("orders", timeout=30).topics["orders"].partitions
    consumer.assign([TopicPartition("orders", number, 0) for number in partitions])
    orders, ends = list[bytes | None](), 0
    while ends < len(partitions):
        message = consumer.poll(30)
        assert message is not None
        error = message.error()
        if error is None:
            orders.append(message.value())
        else:
            assert error.code() == KafkaError._PARTITION_EOF
            ends += 1
    consumer.close()
    assert len(orders) == 3
    assert set(orders) == {b"rice", b"salt", b"tea"}
