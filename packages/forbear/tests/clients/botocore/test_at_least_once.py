"""`safe=forbear.at_least_once` through boto3: what is sent again after a lost response, and what never is."""

from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

import forbear
from forbear.clients.botocore import install
from forbear_testkit.clients import aws
from forbear_testkit.clients.wire import Wire
from forbear_testkit.services.aws import operation

QUEUE, TOPIC = "https://sqs.us-east-1.amazonaws.com/1/q", "arn:aws:sns:us-east-1:1:t"
ENTRIES = [{"Id": "1", "MessageBody": "m"}]
NOTICES = [{"Id": "1", "Message": "m"}]
RECORD = {"StreamName": "s", "Data": b"x", "PartitionKey": "p"}
RECORDS = {"StreamName": "s", "Records": [{"Data": b"x", "PartitionKey": "p"}]}
DELIVERY: dict[str, Any] = {"DeliveryStreamName": "s"}
ORDERED = {"MessageGroupId": "g"}  # a queue that deduplicates by content: the request does not show it

SENT_AGAIN: list[tuple[str, str, dict[str, Any]]] = [
    ("sqs", "SendMessage", {"QueueUrl": QUEUE, "MessageBody": "m"}),
    ("sqs", "SendMessageBatch", {"QueueUrl": QUEUE, "Entries": ENTRIES}),
    ("sns", "Publish", {"TopicArn": TOPIC, "Message": "m"}),
    ("sns", "PublishBatch", {"TopicArn": TOPIC, "PublishBatchRequestEntries": NOTICES}),
    ("kinesis", "PutRecord", RECORD),
    ("kinesis", "PutRecords", RECORDS),
    ("firehose", "PutRecord", {**DELIVERY, "Record": {"Data": b"x"}}),
    ("firehose", "PutRecordBatch", {**DELIVERY, "Records": [{"Data": b"x"}]}),
    ("events", "PutEvents", {"Entries": [{"Source": "s", "DetailType": "t", "Detail": "{}"}]}),
]
SENT_ONCE: list[tuple[str, str, dict[str, Any]]] = [
    ("sqs", "SendMessage", {"QueueUrl": f"{QUEUE}.fifo", "MessageBody": "m", **ORDERED}),
    ("sqs", "SendMessageBatch", {"QueueUrl": f"{QUEUE}.fifo", "Entries": [{**ENTRIES[0], **ORDERED}]}),
    ("sns", "Publish", {"TopicArn": f"{TOPIC}.fifo", "Message": "m", **ORDERED}),
    ("sns", "Publish", {"TargetArn": f"{TOPIC}.fifo", "Message": "m", **ORDERED}),
    ("sns", "Publish", {"PhoneNumber": "+15550100", "Message": "m"}),
    ("cloudwatch", "PutMetricData", {"Namespace": "n", "MetricData": [{"MetricName": "m", "Value": 1.0}]}),
    (
        "logs",
        "PutLogEvents",
        {"logGroupName": "g", "logStreamName": "s", "logEvents": [{"timestamp": 1, "message": "m"}]},
    ),
    ("lambda", "Invoke", {"FunctionName": "f", "InvocationType": "Event"}),
    ("sqs", "ReceiveMessage", {"QueueUrl": QUEUE}),
]


def send(service: str, name: str, parameters: dict[str, Any]) -> int:
    """Lose the first response to a call, and return how many requests arrived."""
    method = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
    with Wire(aws.LOST, aws.succeed(operation(service, name))) as wire:
        client = install(aws.client(service, wire.url), safe=forbear.at_least_once)
        with suppress(ConnectionClosedError):
            getattr(client, method)(**parameters)
        return len(wire.seen)


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize(("service", "name", "parameters"), SENT_AGAIN)
def test_sent_again(service: str, name: str, parameters: dict[str, Any]) -> None:
    """Operations whose vendor documents that a message may be delivered more than once."""
    assert send(service, name, parameters) == 2


@pytest.mark.usefixtures("virtual_time")
@pytest.mark.parametrize(("service", "name", "parameters"), SENT_ONCE)
def test_sent_once(service: str, name: str, parameters: dict[str, Any]) -> None:
    """FIFO queues and topics, messages to phones, and operations whose vendor says nothing of duplicates."""
    assert send(service, name, parameters) == 1
