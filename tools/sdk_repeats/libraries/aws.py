"""boto3."""

import json
from typing import Any

import forbear
from forbear_testkit.clients.aws import CREDENTIALS, boto3, succeed
from forbear_testkit.lazily import Library as Lazy
from forbear_testkit.services.aws import operation
from tools.sdk_repeats.origin import Request, Response
from tools.sdk_repeats.trials import Library, Operation

_config: Any = Lazy("botocore.config")


class _Services:
    """The clients of boto3 for one server: `services("sqs")`."""

    def __init__(self, url: str, mode: str) -> None:
        self._url, self._mode = url, mode

    def __call__(self, service: str) -> Any:
        retries: dict[str, Any] = {"retries": {"total_max_attempts": 1}} if self._mode == "off" else {}
        config = _config.Config(proxies={}, s3={"addressing_style": "path"}, **retries)
        client = boto3.client(service, endpoint_url=self._url, config=config, **CREDENTIALS)
        return forbear.install(client) if self._mode == "forbear" else client


def _operation(service: str, name: str, second: str, words: str = "", **parameters: Any) -> Operation:
    method = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")

    def respond() -> Response:
        head, _, body = succeed(operation(service, name)).data.partition(b"\r\n\r\n")
        lines = (line.partition(": ") for line in head.decode().split("\r\n")[1:])
        return Response(200, body, tuple((key, value) for key, _, value in lines if key != "Content-Length"))

    return Operation(
        f"{service}.{name}{words}",
        lambda services: getattr(services(service), method)(**parameters),
        second,
        respond=respond,
    )


def _key(request: Request) -> str | None:
    """Return the token that botocore fills."""
    try:
        token: str | None = json.loads(request.body).get("ClientRequestToken")
    except ValueError:
        return None
    return token


_COUNT: dict[str, Any] = {
    "TableName": "t",
    "Key": {"k": {"S": "1"}},
    "UpdateExpression": "ADD n :v",
    "ExpressionAttributeValues": {":v": {"N": "1"}},
}
_MAIL: dict[str, Any] = {
    "FromEmailAddress": "a@example.com",
    "Destination": {"ToAddresses": ["b@example.com"]},
    "Content": {"Raw": {"Data": b"x"}},
}

LIBRARIES = (
    Library(
        "boto3",
        ("boto3", "botocore"),
        _Services,
        'Config(retries={"total_max_attempts": 1})',
        "forbear.install(client)",
        (
            _operation("dynamodb", "UpdateItem", "counts twice", " with ADD", **_COUNT),
            _operation("sqs", "SendMessage", "a second message", QueueUrl="https://sqs/1/q", MessageBody="m"),
            _operation("lambda", "Invoke", "runs the function twice", FunctionName="f"),
            _operation("kinesis", "PutRecord", "a second record", StreamName="s", Data=b"x", PartitionKey="p"),
            _operation("sesv2", "SendEmail", "a second mail", **_MAIL),
            _operation("iam", "CreateAccessKey", "a second key", UserName="u"),
            _operation("s3", "PutObject", "", Bucket="b", Key="k", Body=b"x"),
            _operation("secretsmanager", "CreateSecret", "", Name="s", SecretString="x"),
        ),
        key=_key,
        note="Secrets Manager knows a second request by its token, which botocore fills.",
    ),
)
