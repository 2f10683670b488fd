"""Clients of boto3 against a server of our own, and that server's responses in all protocols of AWS."""

from typing import Any

from forbear_testkit.clients.wire import Answer, reply
from forbear_testkit.lazily import Library

boto3: Any = Library("boto3")
_config: Any = Library("botocore.config")
_client: Any = Library("botocore.session")

_made: list[Any] = []

CREDENTIALS = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}

LOST = Answer(end="reset")
"""The server executes the request, and the connection breaks."""

COUNT: dict[str, Any] = {
    "TableName": "t",
    "Key": {"k": {"S": "1"}},
    "UpdateExpression": "ADD n :v",
    "ExpressionAttributeValues": {":v": {"N": "1"}},
}
"""The parameters of an UpdateItem that counts: it must not be executed twice."""
KEY: dict[str, Any] = {"TableName": "t", "Key": {"k": {"S": "1"}}}
"""The parameters of a GetItem."""
_CONCURRENCY = {"FunctionName": "f", "ReservedConcurrentExecutions": 1}
FUNCTIONS: dict[str, tuple[str, str, dict[str, Any], int, int]] = {
    "read": ("dynamodb", "get_item", KEY, 2, 2),
    "absolute": ("dynamodb", "put_item", {"TableName": "t", "Item": {"k": {"S": "1"}}}, 2, 2),
    "absolute put": ("lambda", "put_function_concurrency", _CONCURRENCY, 2, 2),
    "unsafe": ("dynamodb", "update_item", COUNT, 1, 1),
    "token": ("secretsmanager", "create_secret", {"Name": "s", "SecretString": "x"}, 2, 1),
}
"""Calls in a function: service, method, parameters, and how often the server executes it if the first response is lost.

The first number is for a client with forbear's retries, whose own attempts are used up, the second for a plain client.
"""
OK = reply(200, b"{}", "x-amzn-requestid: R2")
BUSY = reply(503, b"{}", "x-amzn-requestid: R1")
THROTTLED = reply(400, b'{"__type": "ProvisionedThroughputExceededException", "message": "m"}', "x-amzn-requestid: R1")


def client(service: str, url: str, mode: str = "standard", **config: Any) -> Any:
    """Return a client of boto3 for a server on loopback, with botocore's retries in this mode."""
    made = boto3.client(service, endpoint_url=url, config=settings(mode, **config), **CREDENTIALS)
    made.meta.events.register("before-call.s3", _expect_nothing)
    return track(made)


def track(client: Any) -> Any:
    """Return a client, which `close_all` closes."""
    _made.append(client)
    return client


def drop(response: dict[str, Any]) -> None:
    """Close the streams of a response that nobody reads."""
    for value in response.values():
        if hasattr(value, "close"):
            value.close()


def close_all() -> None:
    """Close all clients that were made or tracked since the last time."""
    while _made:
        _made.pop().close()


def _expect_nothing(params: dict[str, Any], **_: Any) -> None:
    params["headers"].pop("Expect", None)  # the server sends no 100, for which botocore would wait a second


def settings(mode: str = "standard", attempts: int | None = None, **config: Any) -> Any:
    """Return a botocore.Config for a server on loopback, by which botocore itself makes so many attempts."""
    retries = {"mode": mode} if attempts is None else {"mode": mode, "total_max_attempts": attempts}
    return _config.Config(retries=retries, proxies={}, s3={"addressing_style": "path"}, **config)


def succeed(operation: Any, *headers: str) -> Answer:
    """Return an empty success of an operation, botocore's model, in its protocol."""
    body, listed = _success(operation)
    return reply(200, body, *listed, *headers)


def cut(operation: Any) -> list[Answer]:
    """Return a success whose body is cut off, [] for an operation without a body that botocore reads."""
    if operation.has_streaming_output or operation.has_event_stream_output or operation.http["method"] == "HEAD":
        return []
    body, listed = _success(operation)
    return [reply(200, body[:3], *listed, length=len(body) + 40, end="close")]


def fail(operation: Any, status: int, code: str, *headers: str) -> Answer:
    """Return an error of an operation with a code, in its protocol."""
    protocol = _protocol(operation)
    if protocol in ("json", "rest-json"):
        body = f'{{"__type": "{code}", "message": "m"}}'
        return reply(status, body.encode(), f"x-amzn-errortype: {code}", "Content-Type: application/json", *headers)
    if protocol == "smithy-rpc-v2-cbor":
        body_of_cbor = b"\xa2" + _cbor("__type") + _cbor(code) + _cbor("message") + _cbor("m")
        return reply(status, body_of_cbor, *_CBOR, *headers)
    inner = f"<Error><Code>{code}</Code><Message>m</Message></Error>"
    if protocol == "ec2":
        inner = f"<Response><Errors>{inner}</Errors><RequestID>r</RequestID></Response>"
    elif operation.service_model.service_name != "s3":
        inner = f"<ErrorResponse>{inner}<RequestId>r</RequestId></ErrorResponse>"
    return reply(status, inner.encode(), *headers)


_CBOR = ("smithy-protocol: rpc-v2-cbor", "Content-Type: application/cbor")


def _success(operation: Any) -> tuple[bytes, tuple[str, ...]]:
    protocol = _protocol(operation)
    output = operation.output_shape
    if protocol in ("json", "rest-json"):
        return b"{}", ("Content-Type: application/json",)
    if protocol == "smithy-rpc-v2-cbor":
        return b"\xa0", _CBOR
    wrapper = "" if output is None else output.serialization.get("resultWrapper", "")
    inner = f"<{wrapper}></{wrapper}>" if wrapper else "<requestId>r</requestId>"
    return f"<{operation.name}Response>{inner}</{operation.name}Response>".encode(), ()


def _protocol(operation: Any) -> str:
    model = operation.service_model
    protocol: str = getattr(model, "resolved_protocol", None) or model.metadata["protocol"]  # older ones know only one
    return protocol


def _cbor(text: str) -> bytes:
    data = text.encode()
    return (bytes([0x60 + len(data)]) if len(data) < 24 else bytes([0x78, len(data)])) + data


def complete(operation: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters with every member that the operation needs; missing ones get small values."""
    shape = operation.input_shape
    return parameters if shape is None else _fill(shape, parameters)


def _fill(shape: Any, given: Any = None) -> Any:
    kind = shape.type_name
    if kind == "structure":
        known: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
        missing = {name: None for name in shape.required_members if name not in known}
        members = {name: _fill(shape.members[name], value) for name, value in (known | missing).items()}
        return members or ({} if not shape.metadata.get("union") else _first_of(shape))
    if kind == "list":
        listed = given if isinstance(given, list) else []
        return [_fill(shape.member, item) for item in listed] or [_fill(shape.member)]
    if given is not None:
        return given
    if kind == "map":
        return {}
    if kind == "timestamp":
        return 0
    if kind == "boolean":
        return False
    if kind == "string":
        return (shape.enum or ["x" * max(1, shape.metadata.get("min", 1))])[0]
    return b"x" if kind == "blob" else max(1, shape.metadata.get("min", 1))


def _first_of(shape: Any) -> Any:
    name = next(iter(shape.members))
    return {name: _fill(shape.members[name])}
