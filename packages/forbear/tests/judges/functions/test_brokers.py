"""kafka-python and pika in decorated functions, against small brokers: how often a message is taken."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests

import forbear
from forbear.events import Reason
from forbear.testing import virtual_time
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.wire import Wire, reply
from forbear_testkit.evidence.brokers import Amqp, Kafka
from forbear_testkit.evidence.forms import FORMS
from forbear_testkit.lazily import Library

kafka: Any = Library("kafka")
pika: Any = Library("pika")

pytestmark = pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")  # by kafka-python

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
UNKNOWN_SERVER_ERROR = -1


def plain() -> dict[str, Any]:
    """Return the options of a producer that does not number its messages; old versions have no other."""
    can_number = "enable_idempotence" in kafka.KafkaProducer.DEFAULT_CONFIG
    return {"retries": 0} | ({"enable_idempotence": False} if can_number else {})


def produce(port: int, **options: Any) -> None:
    """Send a message, and wait until it was taken."""
    producer = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", **options)
    try:
        producer.send("orders", b"order").get(timeout=20)
    finally:
        producer.close(timeout=5)


def produce_plainly(port: int) -> None:
    """Send a message by a producer that does not number its messages."""
    produce(port, **plain())


class Shop:
    """An object that keeps its producer."""

    def __init__(self, port: int) -> None:
        self.producer = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", **plain())

    def send(self) -> None:
        """Send a message, and wait until it was taken."""
        self.producer.send("orders", b"order").get(timeout=20)


def produce_by_object(port: int) -> None:
    """Send by a producer that an object keeps."""
    shop = Shop(port)
    try:
        shop.send()
    finally:
        shop.producer.close(timeout=5)


def produce_elsewhere(port: int) -> None:
    """Wait where the producer is not seen."""
    producer = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", **plain())
    try:
        wait(producer.send("orders", b"order"))
    finally:
        producer.close(timeout=5)


def wait(future: Any) -> None:
    """Wait for a future, without its producer."""
    future.get(timeout=20)


def refuse(port: int) -> None:
    """Send to a topic that the broker does not know."""
    producer = kafka.KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", max_block_ms=30, **plain())
    try:
        producer.send("unknown", b"order")
    finally:
        producer.close(timeout=5)


@pytest.mark.parametrize(
    ("work", "code", "safe", "taken", "option"),
    [
        (produce_plainly, None, (), 1, "forbear.at_least_once"),
        (produce_plainly, UNKNOWN_SERVER_ERROR, (), 1, "forbear.at_least_once"),
        (produce_plainly, None, forbear.at_least_once, 2, ""),
        (produce_plainly, None, "kafka.Produce", 2, ""),
        (produce_by_object, None, forbear.at_least_once, 2, ""),
        (produce_elsewhere, None, forbear.at_least_once, 1, '"kafka.Produce"'),  # it may be idempotent
        (produce, UNKNOWN_SERVER_ERROR, forbear.at_least_once, 1, '"kafka.Produce"'),
    ],
    ids=["lost", "unknown", "in the set", "by name", "kept by an object", "out of sight", "idempotent"],
)
def test_messages_of_kafka(work: Callable[[int], None], code: int | None, safe: Any, taken: int, option: str) -> None:
    """A message that was taken is not sent again, unless the user vouches for it; the set has plain producers only."""
    server = Kafka(1, code)
    with listening(server.talk) as port, virtual_time():
        policy = POLICY.with_changes(safe=safe)
        if taken == 2:
            policy.call(work, port)
        else:
            with pytest.raises(kafka.errors.KafkaError) as caught:
                policy.call(work, port)
            assert f"say so: safe={option} [unsafe]" in str(caught.value.__notes__)
    assert server.executed == taken


def test_a_topic_that_is_not_found() -> None:
    """Nothing was sent while the producer looked for the topic, so the function is called again."""
    server = Kafka(0)
    with listening(server.talk) as port, virtual_time(), pytest.raises(kafka.errors.KafkaError) as caught:
        POLICY.with_attempts(2).call(refuse, port)
    assert "after 2 attempts" in str(caught.value.__notes__)
    assert server.executed == 0


READS: dict[str, Callable[[Any, Any], object]] = {
    "poll": lambda consumer, _: consumer.poll(100),
    "end_offsets": lambda consumer, place: consumer.end_offsets([place]),
    "commit": lambda consumer, place: consumer.commit({place: kafka.OffsetAndMetadata(1, "", -1)}),
}


@pytest.mark.parametrize("name", READS)
def test_consumers_of_kafka(name: str) -> None:
    """The calls of a consumer are seen, and made again: it reads, or says how far it has read."""
    server = Kafka(0)
    with listening(server.talk) as port, virtual_time():
        consumer = kafka.KafkaConsumer(bootstrap_servers=f"127.0.0.1:{port}", group_id="g")
        place = kafka.TopicPartition("orders", 0)
        consumer.assign([place])
        with pytest.raises(kafka.errors.KafkaError) as caught:  # the broker knows no such request
            POLICY.with_changes(unknown="stop").call(READS[name], consumer, place)
        consumer.close(autocommit=False)
    assert "after 3 attempts" in str(caught.value.__notes__)


def connect(port: int) -> Any:
    """Return a connection of pika to a broker."""
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))


def publish(channel: Any) -> None:
    """Publish a message, and wait until it was taken."""
    channel.confirm_delivery()
    channel.basic_publish("", "orders", b"order")


def publish_blindly(channel: Any) -> None:
    """Publish a message that nobody confirms; that its connection is lost is known when it ends."""
    channel.basic_publish("", "orders", b"order")
    channel.connection.close()


CALLS: dict[str, tuple[Callable[[Any], object], bool]] = {
    "queue.declare": (lambda c: c.queue_declare("orders"), True),
    "queue.declare under a name of the server": (lambda c: c.queue_declare(""), False),
    "exchange.declare": (lambda c: c.exchange_declare("orders"), True),
    "queue.bind": (lambda c: c.queue_bind("orders", "orders"), True),
    "queue.delete": (lambda c: c.queue_delete("orders"), False),
    "basic.publish": (publish, False),
    "basic.publish without a confirmation": (publish_blindly, False),
    "basic.get": (lambda c: c.basic_get("orders"), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_pika(name: str) -> None:
    """A method that declares or binds is called again; one that publishes, takes or deletes is not."""
    call, repeated = CALLS[name]
    form, server = list(FORMS.values())[len(name) % 3], Amqp()
    with listening(server.talk) as port, virtual_time():

        def work() -> None:
            with connect(port) as connection:
                call(connection.channel())

        if repeated:
            form(POLICY, work)
        else:
            with pytest.raises(pika.exceptions.AMQPError) as caught:
                form(POLICY, work)
            report = forbear.report(caught.value)
            assert report is not None
            assert report.reason is Reason.UNSAFE
    assert server.executed == [name.partition(" ")[0]] * (2 if repeated else 1)


def test_the_users_word_for_pika() -> None:
    """The note names the method, and `safe` takes it."""
    server = Amqp()

    def work(port: int) -> None:
        with connect(port) as connection:
            publish(connection.channel())

    with listening(server.talk) as port, virtual_time():
        with pytest.raises(pika.exceptions.AMQPError) as caught:
            POLICY.call(work, port)
        assert 'say so: safe="pika.basic_publish"' in str(caught.value.__notes__)
        server.executed.clear()
        POLICY.with_changes(safe="pika.basic_publish").call(work, port)
    assert server.executed == ["basic.publish"] * 2


def test_a_channel_that_is_closed() -> None:
    """Nothing is sent on it, so even a message is tried again."""
    server = Amqp()
    with listening(server.talk) as port, virtual_time():
        channel = connect(port).channel()
        channel.connection.close()
        with pytest.raises(pika.exceptions.AMQPError) as caught:
            POLICY.call(channel.basic_publish, "", "orders", b"order")
        assert "after 3 attempts" in str(caught.value.__notes__)
        with pytest.raises(pika.exceptions.AMQPError) as caught:  # an end shows nothing of the messages before it
            POLICY.call(channel.close)
        assert "after 1 attempt" in str(caught.value.__notes__)
    assert server.executed == []


@pytest.mark.parametrize("client", ["requests", "httpx"])
def test_a_message_that_is_published_within_a_request(client: str) -> None:
    """A read does not hide the message that its hook publishes."""
    server = Amqp()

    def hook(response: Any, **_: object) -> None:
        response.close()
        with connect(port) as connection:
            publish(connection.channel())

    def work() -> None:
        if client == "requests":
            requests.get(wire.url, hooks={"response": hook}, timeout=5)
        else:
            with httpx.Client(event_hooks={"response": [hook]}) as session:
                session.get(wire.url)

    lost = pytest.raises(pika.exceptions.AMQPError)
    with Wire(reply(200), reply(200)) as wire, listening(server.talk) as port, virtual_time(), lost as caught:
        POLICY.call(work)
    assert "pika.basic_publish may have been executed" in str(caught.value.__notes__)
    assert server.executed == ["basic.publish"]
