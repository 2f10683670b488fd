"""Calls of boto3 under faults: what is sent again, what a caller gets, and what the report says."""

import json
import pickle
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import forbear
from forbear.clients.botocore import install
from forbear.core.decide import Reason
from forbear.core.verdict import Kind
from forbear.evidence.sent import AwsCall
from forbear.services import aws as service
from forbear.testing import virtual_time
from forbear_testkit.clients import aws
from forbear_testkit.clients.aws import BUSY, COUNT, KEY, OK, THROTTLED
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.lazily import Library

exceptions: Any = Library("botocore.exceptions")

LIMITED = reply(429, b'{"__type": "ThrottlingException", "message": "m"}')
MODES = ["legacy", "standard", "adaptive"]


@pytest.fixture(autouse=True)
def time() -> Iterator[Any]:
    """Waits take no time."""
    with virtual_time(seed=7) as clock:
        yield clock


def dynamodb(server: Wire, mode: str = "standard", **options: Any) -> Any:
    """Return a client of DynamoDB with forbear's retries."""
    return install(aws.client("dynamodb", server.url, mode), **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("first", [aws.LOST, BUSY], ids=["lost", "503"])
def test_read(mode: str, first: Answer) -> None:
    """A read is repeated, and the header counts its attempts."""
    with Wire(first, OK) as server:
        response = dynamodb(server, mode).get_item(**KEY)
    assert response["ResponseMetadata"]["RetryAttempts"] == 1
    assert [seen.header("amz-sdk-request") for seen in server.seen] == ["attempt=1; max=5", "attempt=2; max=5"]
    assert forbear.report(response) is None


@pytest.mark.parametrize("mode", MODES)
def test_lost_write(mode: str) -> None:
    """A write that counts is sent once; the error is botocore's, with note and report."""
    with Wire(aws.LOST) as server, pytest.raises(exceptions.ConnectionClosedError) as caught:
        dynamodb(server, mode).update_item(**COUNT)
    assert len(server.seen) == 1
    (note,) = caught.value.__notes__
    assert note.startswith("forbear: gave up after 1 attempt")
    assert "ConditionExpression" in note
    assert 'vouch for it with safe="dynamodb.UpdateItem"' in note
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, report.method, report.resource) == (Reason.UNSAFE, "dynamodb.UpdateItem", "t")


@pytest.mark.parametrize("by", ["install", "decorator"])
@pytest.mark.parametrize(("first", "billed"), [(aws.LOST, True), (LIMITED, False)], ids=["lost", "throttled"])
def test_models_are_billed(by: str, first: Answer, billed: bool) -> None:
    """A call of a model is repeated, and the event says that the lost attempt may have cost money, too."""
    events = list[object]()
    policy = forbear.retry(forbear.transient, attempts=2, on_event=events.append)
    with Wire(first, OK) as server:
        model = aws.client("bedrock-runtime", server.url, "standard", attempts=1)
        if by == "install":
            install(model, on_event=events.append)
        ask = model.converse if by == "install" else policy(model.converse)
        ask(modelId="m", messages=[{"role": "user", "content": [{"text": "Hello"}]}])
    (recovered,) = (event for event in events if isinstance(event, forbear.events.Recovered))
    assert recovered.billed is billed


def test_write_with_an_error_response() -> None:
    """The report of a ClientError rides in its ResponseMetadata, which stays a dict for JSON and pickle."""
    with Wire(BUSY) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server).update_item(**COUNT)
    assert len(server.seen) == 1
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.UNSAFE
    assert report.attempts[0].request_ids == (("x-amzn-requestid", "R1"),)
    assert (report.attempts[0].error, report.attempts[0].status) == ("HTTP 503", 503)
    assert json.loads(json.dumps(caught.value.response))["ResponseMetadata"]["HTTPStatusCode"] == 503
    again = pickle.loads(pickle.dumps(caught.value))
    assert forbear.report(again) == report


def test_refused() -> None:
    """A write that the service refused unexecuted is sent again; the report gives that reason."""
    with Wire(THROTTLED, THROTTLED, BUSY) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server).update_item(**COUNT)
    assert len(server.seen) == 3
    report = forbear.report(caught.value)
    assert report is not None
    names = [attempt.error for attempt in report.attempts]
    assert names == [*["ProvisionedThroughputExceededException (refused)"] * 2, "HTTP 503"]


def test_throttled_batch() -> None:
    """The code of a batch proves nothing; but its members may be written twice."""
    with Wire(THROTTLED, OK) as server:
        dynamodb(server).batch_write_item(RequestItems={"t": [{"DeleteRequest": {"Key": KEY["Key"]}}]})
        assert len(server.seen) == 2
        server.answers[:] = [THROTTLED]
        with pytest.raises(exceptions.ClientError):
            dynamodb(server).batch_execute_statement(Statements=[{"Statement": "INSERT ..."}])
        assert len(server.seen) == 3


def test_partial_success() -> None:
    """Items that were not processed are a success: the caller's loop sends them."""
    with Wire(reply(200, b'{"UnprocessedItems": {"t": [{}]}}')) as server:
        response = dynamodb(server).batch_write_item(RequestItems={"t": [{"DeleteRequest": {"Key": KEY["Key"]}}]})
    assert len(server.seen) == 1
    assert response["UnprocessedItems"]["t"]


def test_permanent() -> None:
    """A permanent error is the caller's business alone."""
    with (
        Wire(reply(400, b'{"__type": "ValidationException"}')) as server,
        pytest.raises(exceptions.ClientError) as caught,
    ):
        dynamodb(server).update_item(**COUNT)
    assert len(server.seen) == 1
    assert forbear.report(caught.value) is None


def test_error_that_the_model_marks() -> None:
    """An error that botocore's model marks as one to retry is repeated where the operation allows it."""
    body = b'{"Type": "Service", "Code": "x", "Message": "m"}'
    answer = reply(412, body, "x-amzn-errortype: ResourceNotReadyException", "Content-Type: application/json")
    with Wire(answer, reply(200, b"{}")) as server:
        client = install(aws.client("lambda", server.url))
        model = client.meta.service_model.operation_model("Invoke")
        marked = {shape.name for shape in model.error_shapes if shape.metadata.get("retryable")}
        answer_of = aws.fail(model, 418, next(iter(marked), "TooManyRequestsException"))
        server.answers[:] = [answer_of, reply(200, b"")]
        aws.drop(client.invoke(FunctionName="f", InvocationType="DryRun"))
    assert len(server.seen) == 2


def test_waits(time: Any) -> None:
    """The longest wait that a server asks for is obeyed; x-amz-retry-after is in milliseconds."""
    slow = reply(503, b"{}", "x-amz-retry-after: 7000", "Retry-After: 3")
    with Wire(slow, OK) as server:
        dynamodb(server, attempts=2).get_item(**KEY)
    assert 7 <= time.elapsed < 8


def test_timeout(time: Any) -> None:
    """A wait that would end past the timeout is not begun."""
    with Wire(reply(503, b"{}", "Retry-After: 30")) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server, timeout=timedelta(seconds=20)).get_item(**KEY)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.RETRY_AFTER
    assert time.elapsed == 0


def test_refused_connections() -> None:
    """A request that could not connect was not executed: any operation is tried again."""
    with Wire(aws.LOST) as server:
        url = server.url
    with pytest.raises(exceptions.EndpointConnectionError) as caught:
        install(aws.client("dynamodb", url), attempts=3).update_item(**COUNT)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.count, report.reason) == (3, Reason.ATTEMPTS)


def sends_a_message(call: AwsCall) -> bool:
    """Return whether a call is one of SendMessage."""
    return call.operation == "sqs.SendMessage"


@pytest.mark.parametrize("safe", ["sqs.SendMessage", ["sqs.Send*"], sends_a_message])
def test_vouched(safe: Any) -> None:
    """The user's word makes an operation repeatable; the report of a retry names it."""
    with Wire(aws.LOST, aws.LOST, reply(200, b"{}")) as server:
        client = install(aws.client("sqs", server.url), safe=safe, attempts=3)
        client.send_message(QueueUrl=f"{server.url}/1/q", MessageBody="m")
        assert len(server.seen) == 3
        server.answers[:] = [aws.LOST]
        with pytest.raises(exceptions.ConnectionClosedError) as caught:
            client.send_message(QueueUrl=f"{server.url}/1/q", MessageBody="m")
    report = forbear.report(caught.value)
    assert report is not None
    assert report.vouched


def test_vouching_for_another_operation() -> None:
    """A word for one operation says nothing about another."""
    with Wire(aws.LOST) as server:
        client = install(aws.client("sqs", server.url), safe="sqs.SendMessageBatch")
        with pytest.raises(exceptions.ConnectionClosedError):
            client.send_message(QueueUrl=f"{server.url}/1/q", MessageBody="m")
    assert len(server.seen) == 1


def answers_by_a_text(call: AwsCall) -> Any:
    """Return no bool."""
    return call.operation


def divides_by_zero(call: AwsCall) -> bool:
    """Raise ZeroDivisionError."""
    return 1 / (call.operation == "sns.Publish") > 0


@pytest.mark.parametrize("safe", [answers_by_a_text, divides_by_zero])
def test_broken_words(safe: Any) -> None:
    """A function that raises, or returns no bool, ends the call with botocore's error."""
    with Wire(aws.LOST) as server:
        client = install(aws.client("sqs", server.url), safe=safe)
        with pytest.raises(exceptions.ConnectionClosedError) as caught:
            client.send_message(QueueUrl=f"{server.url}/1/q", MessageBody="m")
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.UNSAFE
    assert "SendMessage" in report.text or "by zero" in report.text


def test_earlier_attempt_may_have_worked() -> None:
    """A conflict after a lost response may be with one's own work: it is raised, and the report warns of that."""
    exists = reply(400, b'{"__type": "ResourceInUseException"}')
    with Wire(aws.LOST, exists) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server).create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done


def test_conditional_write() -> None:
    """A condition that the write makes false protects it: the second attempt meets the first one's work."""
    failed = reply(400, b'{"__type": "ConditionalCheckFailedException"}')
    with Wire(aws.LOST, failed) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server).update_item(**COUNT, ConditionExpression="attribute_not_exists(k)")
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done
    assert len(server.seen) == 2


def test_tokens_are_equal_in_all_attempts() -> None:
    """botocore fills a token once for a call, which is repeated under it."""
    put = {"Put": {"TableName": "t", "Item": {"k": {"S": "1"}}}}
    with Wire(aws.LOST, aws.LOST, OK) as server:
        dynamodb(server).transact_write_items(TransactItems=[put])
    tokens = {json.loads(seen.body)["ClientRequestToken"] for seen in server.seen}
    assert (len(server.seen), len(tokens)) == (3, 1)


def test_forgotten_tokens(time: Any) -> None:
    """No request with a key is sent when the service may have forgotten it (counterexample K6)."""
    put = {"Put": {"TableName": "t", "Item": {"k": {"S": "1"}}}}
    slow = reply(503, b"{}", "Retry-After: 400")
    with Wire(slow) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server).transact_write_items(TransactItems=[put])
    assert len(server.seen) == 2  # 800 s would be beyond 540 of 600
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, "forgotten" in report.text) == (Reason.UNSAFE, True)
    assert time.elapsed < 540


def test_policy_of_another_kind() -> None:
    """Another policy brings its `on`, limits and waits; what proves that nothing was executed still counts."""
    policy = forbear.retry(forbear.transient, attempts=3)
    with Wire(THROTTLED, THROTTLED, THROTTLED) as server, pytest.raises(exceptions.ClientError):
        dynamodb(server, policy=policy).update_item(**COUNT)
    assert len(server.seen) == 3
    with Wire(BUSY) as server, pytest.raises(exceptions.ClientError):
        dynamodb(server, policy=policy).update_item(**COUNT)
    assert len(server.seen) == 1
    picky = forbear.retry(on=lambda _: False, attempts=3)
    with Wire(BUSY) as server, pytest.raises(exceptions.ClientError):
        dynamodb(server, policy=picky).get_item(**KEY)
    assert len(server.seen) == 1


def test_around_it() -> None:
    """A decorated function does not multiply the attempts of the client."""
    with Wire(BUSY) as server:
        client = dynamodb(server, attempts=2)
        with pytest.raises(exceptions.ClientError):
            forbear.retry(forbear.transient, attempts=3)(client.get_item)(**KEY)
    assert len(server.seen) == 2


def test_events_and_budget() -> None:
    """Listeners hear of each attempt, and a budget that is used up ends the retries."""
    events: list[Any] = []
    budget = forbear.budgets.Budget(forbear.budgets.TokenBucket(capacity=2))
    with Wire(BUSY) as server, pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server, budget=budget, on_event=events.append, attempts=9).get_item(**KEY)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.BUDGET
    assert len(server.seen) == report.count
    assert [type(event).__name__ for event in events][-2:] == ["Failed", "GaveUp"]
    assert events[0].verdict.kind is Kind.TRANSIENT


def test_first_attempts_that_a_budget_refuses() -> None:
    """A budget that throttles its client refuses calls before they are sent."""
    budget = forbear.budgets.Budget(forbear.budgets.ClientThrottle())
    with Wire(BUSY) as server:
        client = dynamodb(server, budget=budget, attempts=1)
        refused = 0
        for _ in range(40):
            try:
                client.get_item(**KEY)
            except forbear.Throttled as error:
                refused += 1
                report = forbear.report(error)
                assert report is not None
                assert (report.reason, report.method) == (Reason.BUDGET, "dynamodb.GetItem")
            except exceptions.ClientError:
                pass
    assert len(server.seen) == 40 - refused
    assert refused > 10


def test_stop_on() -> None:
    """An event of the caller ends a wait, and the call returns its error."""
    event = threading.Event()
    event.set()
    with Wire(BUSY) as server, forbear.stop_on(event), pytest.raises(exceptions.ClientError) as caught:
        dynamodb(server).get_item(**KEY)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is Reason.STOPPED
    assert len(server.seen) == 1


def test_threads() -> None:
    """One client serves many threads; each call counts its own attempts."""
    with Wire(*[aws.LOST, OK] * 8, OK) as server:
        client = dynamodb(server, attempts=20)
        errors: list[BaseException] = []

        def read() -> None:
            try:
                with virtual_time():
                    client.get_item(**KEY)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors
    assert len(server.seen) == 16


def test_paginators_and_waiters() -> None:
    """Each request of a paginator and of a waiter is retried by itself."""
    page = reply(200, b'{"TableNames": ["a"], "LastEvaluatedTableName": "abc"}')
    table = b'{"Table": {"TableStatus": "ACTIVE"}}'
    with Wire(aws.LOST, page, aws.LOST, reply(200, b'{"TableNames": ["b"]}'), aws.LOST, reply(200, table)) as server:
        client = dynamodb(server)
        pages = client.get_paginator("list_tables").paginate()
        assert [name for listed in pages for name in listed["TableNames"]] == ["a", "b"]
        client.get_waiter("table_exists").wait(TableName="abc")
    assert len(server.seen) == 6


def test_the_service() -> None:
    """The recommended policy is that of the service."""
    assert service.policy.limits.attempts == 5
    assert not service.policy.repeats_calls
