"""`forbear explain aws`: the command around `forbear.answers.aws`."""

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from forbear.cli.app import app
from forbear.cli.explain import command


def explain(*words: str) -> Any:
    """Return the result of the command."""
    return CliRunner().invoke(app, ["explain", *words])


def test_parameters() -> None:
    """They decide, and the JSON has their names alone."""
    parameters = json.dumps({"QueueUrl": "https://host/secret.fifo", "MessageDeduplicationId": "order-17"})
    done = explain("--json", "aws", "sqs", "SendMessage", "--parameters", parameters)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["repeatable"] is True
    assert document["request"]["parameters"] == ["MessageDeduplicationId", "QueueUrl"]
    assert "order-17" not in done.stdout


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("aws", "sqs", "SendMesage"), "is it SendMessage"),
        (("aws", "sqs", "SendMessage", "--parameters", "{"), "`--parameters` must be a JSON object"),
        (("aws", "sqs", "SendMessage", "--service", "iam"), "`--service` does not go with a call of AWS"),
        (("GET", "https://example.com", "--parameters", "{}"), "`--parameters` does not go with a METHOD and a URL"),
        (("aws", "sqs", "SendMessage", "--profile", "iam"), "`--profile` iam does not go with a call of AWS"),
    ],
)
def test_bad_input(words: tuple[str, ...], text: str) -> None:
    """Errors name the option, and the cure."""
    done = explain(*words)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.mark.parametrize(
    ("typed", "incomplete", "name"),
    [
        (("aws",), "dynamo", "dynamodb"),
        (("aws", "sqs"), "SendM", "SendMessageBatch"),
        (("aws", "x"), "", None),
        ((), "", None),
    ],
)
def test_completion(typed: tuple[str, ...], incomplete: str, name: str | None) -> None:
    """The shell completes services and operations after the word aws, and nothing elsewhere."""
    words = next(each for each in command.params if each.name == "words")
    context = click.Context(command)
    context.params["words"] = typed
    found = [item.value for item in words.shell_complete(context, incomplete)]
    assert (name in found) if name else found == []
