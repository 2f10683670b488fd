"""One table of calls, asked twice: what the audit says of the code is what forbear says when the call runs."""

import ast
from typing import Any

import botocore.session
import pytest

import forbear
from forbear.services.aws import classify
from forbear_audit.libraries.unsafe_calls import unsafe_calls_in
from forbear_audit.reading.modules import Module

_IMPORTS = (
    "import boto3, redis, requests, stripe\nfrom google.cloud import pubsub_v1\n"
    "cache = redis.Redis()\npublisher = pubsub_v1.PublisherClient()\n"
)


def is_reported(call: str, before: str = "") -> bool:
    """Return whether the audit would report a call that is repeated."""
    module = Module(ast.parse(f"{_IMPORTS}{before}\ndef send(key):\n    {call}\n"))
    function = module.functions[0]
    return any(unsafe_calls_in(module, function.body))


@pytest.mark.parametrize(
    ("call", "request_of_it"),
    [
        ("requests.post('https://api.example.com/orders')", "POST https://api.example.com/orders"),
        ("requests.patch('https://api.example.com/orders/1')", "PATCH https://api.example.com/orders/1"),
        ("requests.put('https://api.example.com/orders/1')", "PUT https://api.example.com/orders/1"),
        ("requests.delete('https://api.example.com/orders/1')", "DELETE https://api.example.com/orders/1"),
        ("requests.get('https://api.example.com/orders')", "GET https://api.example.com/orders"),
        ("cache.incr('a')", "INCR a"),
        ("cache.set('a', 1)", "SET a 1"),
        ("cache.get('a')", "GET a"),
        ("cache.lpush('a', 1)", "LPUSH a 1"),
        ("stripe.Refund.create(charge='c')", "POST https://api.stripe.com/v1/refunds"),
        ("publisher.publish('t', b'')", "/google.pubsub.v1.Publisher/Publish"),
    ],
)
def test_code_and_runtime_agree(call: str, request_of_it: str) -> None:
    """A call is reported if `forbear.explain` says that its request must not be repeated."""
    assert is_reported(call) is not forbear.explain(request_of_it).repeatable


@pytest.mark.parametrize(
    ("service", "operation", "parameters"),
    [
        ("sqs", "SendMessage", {"QueueUrl": "https://sqs.example/q", "MessageBody": "m"}),
        ("sqs", "DeleteMessage", {"QueueUrl": "https://sqs.example/q", "ReceiptHandle": "r"}),
        ("sns", "Publish", {"TopicArn": "t", "Message": "m"}),
        ("s3", "PutObject", {"Bucket": "b", "Key": "k"}),
        ("s3", "CreateMultipartUpload", {"Bucket": "b", "Key": "k"}),
        ("dynamodb", "PutItem", {"TableName": "t", "Item": {}}),
        ("dynamodb", "UpdateItem", {"TableName": "t", "Key": {}, "UpdateExpression": "ADD n :one"}),
        ("dynamodb", "GetItem", {"TableName": "t", "Key": {}}),
        ("lambda", "Invoke", {"FunctionName": "f"}),
        ("lambda", "Invoke", {"FunctionName": "f", "InvocationType": "DryRun"}),
    ],
)
def test_code_and_the_adapter_of_aws_agree(service: str, operation: str, parameters: dict[str, Any]) -> None:
    """A call is reported if the adapter for botocore would not send it again, by the real model of the operation."""
    model = _SESSION.get_service_model(service).operation_model(operation)
    method = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation)[1:]
    options = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    assert is_reported(f"boto3.client('{service}').{method}({options})") is not classify(model, parameters).repeatable


_SESSION: Any = botocore.session.get_session()


@pytest.mark.parametrize(("key", "reported"), [("key", False), ("str(uuid.uuid4())", True)])
def test_a_key_counts_if_it_is_made_outside(key: str, *, reported: bool) -> None:
    """A key that each attempt makes anew makes nothing safe."""
    assert is_reported(f"stripe.Refund.create(idempotency_key={key})", "import uuid") is reported


@pytest.mark.parametrize(
    ("before", "call", "is_unsafe"),
    [
        ("from shop_pb2_grpc import ShopStub\nstub = ShopStub(channel)", "stub.PlaceOrder(key)", True),
        ("from shop_pb2_grpc import ShopStub\nstub = ShopStub(channel)", "stub.GetOrder(key)", False),
        ("from shop_pb2_grpc import ShopStub\nstub = ShopStub(channel)", "stub.DeleteOrder(key)", False),
        ("import http.client\nconn = http.client.HTTPSConnection('x')", "conn.request('POST', '/orders', key)", True),
        ("import http.client\nconn = http.client.HTTPSConnection('x')", "conn.request('GET', '/orders')", False),
        ("from shop import make\nhttp = make()", "http.post('https://api.example.com/orders', json=key)", True),
        ("ctx = {}", "ctx['http'].post('https://api.example.com/orders', json=key)", True),
        ("ctx = {}", "ctx['queue'].post('orders', json=key)", False),
    ],
)
def test_calls_of_stubs_connections_and_kept_clients(before: str, call: str, is_unsafe: bool) -> None:
    """RPCs of unknown services count by their verbs, and a client by its name where nobody knows what made it."""
    assert is_reported(call, before) is is_unsafe
