"""`forbear.at_least_once`: what it holds, and that decorator, adapters, Apis and scopes take it."""

import json
import pickle
from collections.abc import Callable
from typing import Any

import boto3
import botocore.config
import httpx
import pytest
from botocore.exceptions import BotoCoreError

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.evidence.sent import AwsCall, NamedCall
from forbear.grpc.call import GrpcCall
from forbear.grpc.vouch import RpcVouch, apply_vouch
from forbear.http.request import Request
from forbear.services.at_least_once import ROWS
from forbear.services.aws.vouch import AwsVouch
from forbear.services.redis.vouch import safe_commands
from forbear.services.rpcs import rules
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply

LOST = Answer(end="close")
QUEUE, TOPIC = "https://sqs.us-east-1.amazonaws.com/1/q", "arn:aws:sns:us-east-1:1:t"
PUBLISH = "google.pubsub.v1.Publisher/Publish"
PLAIN, KEYED = {"messages": [{"data": "YQ=="}]}, {"messages": [{"data": "YQ=="}, {"orderingKey": "k"}]}
TARGET = "/v1/projects/p/topics/t:publish"


def rest(body: object, host: str = "pubsub.googleapis.com", method: str = "POST") -> Request:
    """Return a request that publishes over REST."""
    return Request(method, host, TARGET, {}, json.dumps(body).encode())


HELD = [
    AwsCall("sqs.SendMessage", None, {"QueueUrl": QUEUE}),
    AwsCall("sqs.SendMessageBatch", None, {"QueueUrl": QUEUE}),
    AwsCall("sns.Publish", None, {"TopicArn": TOPIC}),
    AwsCall("sns.PublishBatch", None, {"TopicArn": TOPIC}),
    AwsCall("kinesis.PutRecord", None, {}),
    AwsCall("kinesis.PutRecords", None, {}),
    AwsCall("firehose.PutRecord", None, {}),
    AwsCall("firehose.PutRecordBatch", None, {}),
    AwsCall("events.PutEvents", None, {}),
    GrpcCall(PUBLISH, PLAIN),
    rest(PLAIN),
    NamedCall("kafka.Produce", {"idempotent": False}),
]
OTHERS = [
    AwsCall("sqs.SendMessage", None, {"QueueUrl": f"{QUEUE}.fifo"}),
    AwsCall("sqs.SendMessageBatch", None, {"QueueUrl": f"{QUEUE}.fifo"}),
    AwsCall("sqs.SendMessage", None, {}),
    AwsCall("sns.Publish", None, {"TopicArn": f"{TOPIC}.fifo"}),
    AwsCall("sns.Publish", None, {"PhoneNumber": "+15550100"}),
    AwsCall("sqs.SendMessage", None, {"QueueUrl": f"{QUEUE}.fifo/"}),
    AwsCall("cloudwatch.PutMetricData", None, {}),
    GrpcCall(PUBLISH, {"messages": [{"ordering_key": "k"}]}),
    GrpcCall(PUBLISH, None),
    GrpcCall("google.pubsub.v1.Subscriber/Pull", PLAIN),
    rest(KEYED),
    rest(PLAIN, method="PUT"),
    rest(PLAIN, host="example.com"),
    rest([1]),
    Request("POST", "pubsub.googleapis.com", TARGET, {}, b"{"),
    Request("POST", "pubsub.googleapis.com", TARGET, {}, None),
    Request("POST", "pubsub.googleapis.com", TARGET, {"host": "example.com"}, json.dumps(PLAIN).encode()),
    NamedCall("kafka.Produce", {"idempotent": True}),
    NamedCall("kafka.Produce", {}),
    None,
]


@pytest.mark.parametrize("call", HELD, ids=map(str, range(len(HELD))))
def test_what_it_holds(call: object) -> None:
    """Each row holds its own operation."""
    assert forbear.at_least_once(call)


@pytest.mark.parametrize("call", OTHERS, ids=map(str, range(len(OTHERS))))
def test_what_it_does_not_hold(call: object) -> None:
    """It does not hold calls that promise order or one message, nor those that are not known."""
    assert not forbear.at_least_once(call)


def test_rows() -> None:
    """There is a row for each operation, with a page of its vendor."""
    assert all(row.source.startswith("https://") for row in ROWS)
    held = {getattr(call, "operation", getattr(call, "name", PUBLISH)) for call in HELD}
    assert held == {row.operation for row in ROWS}


def client(service: str, url: str) -> Any:
    """Return a client of AWS that does not retry."""
    config = botocore.config.Config(retries={"total_max_attempts": 1})
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    return boto3.client(service, region_name="us-east-1", endpoint_url=url, config=config, **keys)


def send(sqs: Any, queue: str = QUEUE) -> object:
    """Send a message."""
    return sqs.send_message(QueueUrl=queue, MessageBody="m")


POLICY = forbear.retry(on=forbear.transient, attempts=3)
RUNS: dict[str, Callable[[Any], object]] = {
    "decorator": lambda sqs: POLICY.with_changes(safe=forbear.at_least_once).call(send, sqs),
    "decorator, among others": lambda sqs: POLICY.with_changes(safe=["INCR", forbear.at_least_once]).call(send, sqs),
    "adapter": lambda sqs: send(forbear.install(sqs, attempts=3, safe=forbear.at_least_once)),
    "adapter, among others": lambda sqs: send(
        forbear.install(sqs, attempts=3, safe=["sqs.TagQueue", forbear.at_least_once])
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_aws(name: str) -> None:
    """The message is sent until the limit."""
    with Wire(LOST) as wire, virtual_time(), pytest.raises(BotoCoreError):
        RUNS[name](client("sqs", wire.url))
    assert len(wire.seen) == 3


@pytest.mark.parametrize("name", ["decorator", "adapter"])
def test_a_fifo_queue(name: str) -> None:
    """A message to a FIFO queue is sent once, and the note does not suggest the set."""

    def send_to_fifo(sqs: Any) -> object:
        return sqs.send_message(QueueUrl=f"{QUEUE}.fifo", MessageBody="m", MessageGroupId="g")

    with Wire(LOST) as wire, virtual_time():
        sqs = client("sqs", wire.url)
        policy = POLICY.with_changes(safe=forbear.at_least_once)
        if name == "adapter":
            forbear.install(sqs, attempts=3, safe=forbear.at_least_once)
        with pytest.raises(BotoCoreError) as caught:
            _ = send_to_fifo(sqs) if name == "adapter" else policy.call(send_to_fifo, sqs)
    assert len(wire.seen) == 1
    assert "safe=forbear.at_least_once" not in str(caught.value.__notes__)
    assert ('safe="forbear.at_least_once" does not match it' in str(caught.value.__notes__)) is (name == "decorator")


@pytest.mark.parametrize("installed", [False, True])
def test_a_scope(*, installed: bool) -> None:
    """A scope vouches for calls of AWS, in functions and in the adapter."""
    with Wire(LOST) as wire, virtual_time(), forbear.safe_to_repeat(forbear.at_least_once):
        sqs = client("sqs", wire.url)
        work = forbear.install(sqs, attempts=3) if installed else sqs
        with pytest.raises(BotoCoreError):
            _ = send(work) if installed else POLICY.call(send, work)
    assert len(wire.seen) == 3


def test_the_note_names_it() -> None:
    """The note on a stopped message, and `explain`, name the set as the cure."""
    with Wire(LOST) as wire, virtual_time(), pytest.raises(BotoCoreError) as caught:
        POLICY.call(send, client("sqs", wire.url))
    assert "say so: safe=forbear.at_least_once [unsafe]" in str(caught.value.__notes__)
    answer = forbear.explain("aws events PutEvents", parameters={"Entries": []})
    assert answer.would_vouch == "safe=forbear.at_least_once"


def test_http() -> None:
    """REST of Pub/Sub: by the option of an adapter and of a policy, and by an Api for the emulator."""
    transport = httpx.MockTransport(lambda request: httpx.Response(503))
    options: list[Any] = [forbear.at_least_once, ["GET https://a.example/", forbear.at_least_once]]
    for safe in options:
        with virtual_time(), httpx.Client(transport=RetryTransport(transport=transport, attempts=3, safe=safe)) as http:
            for body, count in ((PLAIN, 3), (KEYED, 1)):
                report = forbear.report(http.post(f"https://pubsub.googleapis.com{TARGET}", json=body))
                assert report is not None
                assert report.count == count
    with Wire(reply(503)) as wire, virtual_time():
        api = forbear.Api(wire.url, safe=forbear.at_least_once)
        assert pickle.loads(pickle.dumps(api)) == api
        inner = httpx.HTTPTransport(verify=False)
        with httpx.Client(transport=RetryTransport(transport=inner, attempts=2, apis=api)) as http:
            http.post(f"{wire.url}{TARGET}", json=PLAIN)
            assert len(wire.seen) == 2
            http.post(f"{wire.url}/v1/other", json=PLAIN)
            assert len(wire.seen) == 3

        def publish() -> None:
            with httpx.Client(verify=False) as plain:
                plain.post(f"{wire.url}{TARGET}", json=PLAIN).raise_for_status()

        with pytest.raises(httpx.HTTPStatusError):
            POLICY.with_changes(apis=[api]).call(publish)
        assert len(wire.seen) == 6


def test_rpcs() -> None:
    """The adapter of gRPC takes it alone and among names."""
    call = GrpcCall(PUBLISH, PLAIN)
    judgement = rules.judge(call, None)
    assert not judgement.repeatable
    for safe in (forbear.at_least_once, ["/p.S/Get", forbear.at_least_once]):
        assert apply_vouch(judgement, call, RpcVouch(safe)).vouched
        assert not apply_vouch(judgement, GrpcCall(PUBLISH, KEYED), RpcVouch(safe)).vouched


def test_where_it_does_not_belong() -> None:
    """Redis has no operation of the set, so its clients refuse it; others keep their checks."""
    with pytest.raises(ValueError, match=r"forbear\.at_least_once has none of Redis"):
        safe_commands(forbear.at_least_once)
    with pytest.raises(ValueError, match="`safe` must hold names of a service"):
        AwsVouch([forbear.at_least_once, "nothing"])


def test_as_a_value() -> None:
    """It is shown as users write it, and is the same after pickling."""
    assert repr(forbear.at_least_once) == str(forbear.at_least_once) == "forbear.at_least_once"
    assert pickle.loads(pickle.dumps(forbear.at_least_once)) is forbear.at_least_once
    assert repr(POLICY.with_changes(safe=forbear.at_least_once)).endswith("safe=(forbear.at_least_once,))")
