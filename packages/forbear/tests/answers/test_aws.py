"""Answers about calls of AWS, as values."""

import sys
from typing import Any

import pytest

import forbear
from forbear.answers.aws import operations, parse_parameters, services
from forbear.answers.errors import NoAnswer

COUNT = {"UpdateExpression": "ADD n :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}
SET = {"UpdateExpression": "SET n = :v", "ExpressionAttributeValues": {":v": {"N": "1"}}}


def outcomes(answer: Any) -> dict[str, bool]:
    """Return whether each kind of failure is retried."""
    return {outcome.failure: outcome.retried for outcome in answer.outcomes}


def test_a_call() -> None:
    """The parameters decide, and no value of them is in the answer."""
    answer = forbear.explain("aws dynamodb UpdateItem", parameters={**COUNT, "TableName": "secret-table"})
    assert (answer.operation, answer.repeatable, answer.service) == ("dynamodb.UpdateItem", False, "aws")
    assert answer.would_vouch == 'safe="dynamodb.UpdateItem"'
    assert "secret-table" not in repr(answer)
    retried = outcomes(answer)
    assert retried["ProvisionedThroughputExceededException (refused)"]
    assert not retried["503"]
    assert not retried["a body that was cut off"]
    assert forbear.explain("aws dynamodb UpdateItem", parameters=SET).repeatable


def test_a_method_of_boto3() -> None:
    """The operation may be written as boto3's method, and the call as a list of words."""
    assert forbear.explain("aws ec2 run_instances").operation == "ec2.RunInstances"


def test_a_service_in_capitals() -> None:
    """The names of services are in lower case; capitals are read alike."""
    assert forbear.explain("aws SQS SendMessage") == forbear.explain("aws sqs SendMessage")


def test_what_botocore_fills() -> None:
    """A token that botocore fills counts as there; the answer says so, and how long it is remembered."""
    answer = forbear.explain("aws dynamodb TransactWriteItems")
    assert answer.met == "ClientRequestToken"
    assert any("botocore fills ClientRequestToken" in text for text in answer.remarks)
    assert any("600 s" in text or "10 min" in text for text in answer.remarks)


def test_profiles() -> None:
    """The policy is AWS's own, with the limits of a preset if one is named; that of another service is refused."""
    assert forbear.explain("aws sqs SendMessage").policy.limits.attempts == 5
    assert forbear.explain("aws sqs SendMessage", profile="default").policy.limits.timeout == 60
    with pytest.raises(NoAnswer, match="`profile`"):
        forbear.explain("aws sqs SendMessage", profile="iam")


@pytest.mark.parametrize(
    ("request_", "options", "text"),
    [
        ("aws", {}, "a service and an operation"),
        ("aws sqs", {}, "a service and an operation"),
        ("aws sqs SendMessage now", {}, "a service and an operation"),
        ("aws sqss SendMessage", {}, "no such service"),
        ("aws sqs SendMesage", {}, "no such operation"),
        ("aws sqs SendMessage", {"service": "iam"}, "`service`"),
        ("aws sqs SendMessage", {"fields": {}}, "`fields`"),
        ("aws sqs SendMessage", {"headers": {}}, "`headers`"),
        ("GET https://example.com", {"parameters": {}}, "`parameters`"),
    ],
)
def test_no_answer(request_: str, options: dict[str, Any], text: str) -> None:
    """A wrong name or parameter says which one, and what is close to it."""
    with pytest.raises(NoAnswer, match=text):
        forbear.explain(request_, **options)


def test_wrong_types() -> None:
    """Parameters are a mapping."""
    values: Any = [1]
    with pytest.raises(TypeError, match="`parameters`"):
        forbear.explain("aws sqs SendMessage", parameters=values)


@pytest.mark.parametrize("text", ["", "[1]", "{", "7", "[" * 100_000])
def test_parameters_that_are_no_object(text: str) -> None:
    """They are a JSON object."""
    with pytest.raises(NoAnswer, match="`parameters`"):
        parse_parameters(text)


def test_without_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    from forbear.answers import aws

    monkeypatch.setitem(sys.modules, "botocore.loaders", None)
    aws.services.cache_clear()
    aws._loader.cache_clear()
    with pytest.raises(NoAnswer, match="botocore") as caught:
        forbear.explain("aws sqs SendMessage")
    assert "forbear[boto3]" in caught.value.cure
    monkeypatch.undo()
    assert "sqs" in services()


def test_names() -> None:
    """Completion gets the names of all services and operations."""
    assert {"ec2", "s3", "dynamodb"} <= set(services())
    assert "SendMessage" in operations("sqs")
    assert operations("no-such-service") == ()
