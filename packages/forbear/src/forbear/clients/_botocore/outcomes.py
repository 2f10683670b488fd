"""Find out what failed in an attempt, as botocore shows it at `needs-retry`, and what that means.

botocore reads the bodies of responses without looking at their length. A JSON body that was cut off becomes `{}`, and
one in XML raises an error outside of the loop of retries. Both are failures here.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from botocore import exceptions
from urllib3.exceptions import NewConnectionError

from forbear.core.attempt import RequestIds
from forbear.core.chain import chain, read
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.http.request import request_ids
from forbear.run.runtime import current_runtime
from forbear.services.aws.errors import code_of, verdict_of_response
from forbear.services.aws.table import refuses
from forbear.services.errors import is_untrusted

_WITHOUT_BODY = frozenset({204, 304})
_GENERIC = 500


class Outcome(NamedTuple):
    """A failed attempt.

    `error` is the exception that botocore caught, or the one that it will raise, or that of a broken body; `is_torn`
    is True for that one. `name` is the kind of the failure for reports. `status` is None, and `ids` are (), without a
    response.
    """

    error: Exception
    verdict: Verdict
    name: str
    status: int | None = None
    code: str = ""
    ids: RequestIds = ()
    is_torn: bool = False


def find_failure(
    operation: Any,
    response: Any,
    content: bytes | None,
    caught: Exception | None,
    verdict_of_lost: Callable[[Exception], Verdict],
) -> Outcome | None:
    """Return the failure of an attempt, None for a success.

    `operation` is botocore's model. `response` is the pair of its response and what it parsed, or None; `caught` the
    exception instead. `content` is the body, None for one that is a stream. `verdict_of_lost` returns the verdict on
    such an exception.
    """
    if response is None:
        error = caught or exceptions.HTTPClientError(error="no response")
        return Outcome(error, verdict_of_lost(error), type(error).__qualname__)
    answer, parsed = response
    status: int = answer.status_code
    torn = None if content is None else _find_torn(operation, status, answer.headers, content)
    if torn is None and status < 300:
        return None
    headers = {name.lower(): str(value) for name, value in answer.headers.items()}
    ids = request_ids(headers)
    if torn is not None:
        return Outcome(torn, TRANSIENT, type(torn).__qualname__, status, ids=ids, is_torn=True)
    code = code_of(parsed)
    verdict = verdict_of_response(parsed, status, headers, current_runtime().now, retried=_is_marked(operation, code))
    name = f"HTTP {status}" if code in ("", str(status)) else code
    if verdict and refuses(operation.service_model.service_name, operation.name, code):
        verdict, name = verdict.replace(kind=Kind.NOT_EXECUTED), f"{name} (refused)"
    return Outcome(exceptions.ClientError(parsed, operation.name), verdict, name, status, code, ids)


def verdict_of_lost(error: Exception) -> Verdict:
    """Return the verdict on an exception of botocore; NOT_EXECUTED only where no connection was made.

    aiobotocore raises the same class for a request that was sent.
    """
    if isinstance(error, exceptions.EndpointConnectionError | exceptions.ConnectTimeoutError):
        return NOT_EXECUTED
    if any(is_untrusted(cause) for cause in chain(error)):
        return PERMANENT
    if isinstance(error, exceptions.ProxyConnectionError):
        inner = read(read(error, "kwargs"), "get")("error")
        original: object = getattr(inner, "original_error", inner)  # urllib3 calls a lost response a ProxyError, too
        return NOT_EXECUTED if isinstance(original, NewConnectionError) else TRANSIENT
    lost = isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError)
    return TRANSIENT if lost else PERMANENT


def hide_torn(operation_model: Any, response_dict: dict[str, Any], **_: Any) -> None:
    """Keep a body that was cut off from the parser, which would raise: it gets an empty response with a status of 500.

    The same for the page of a proxy with its own error, where XML is parsed. `response_dict`, which botocore parses
    next, is changed in place.
    """
    content, status = response_dict["body"], response_dict["status_code"]
    if not isinstance(content, bytes):
        return
    if _is_short(operation_model, status, response_dict["headers"], content):
        response_dict["status_code"], response_dict["body"] = _GENERIC, b""
    elif status >= _GENERIC and _is_page(operation_model, content):
        response_dict["body"] = b""


def is_read(operation: Any, response: Any) -> bool:
    """Return whether botocore has read the body of a response; a success may be a stream, which the caller reads."""
    if response is None:
        return False
    return response[0].status_code >= 300 or not (operation.has_streaming_output or operation.has_event_stream_output)


def _find_torn(operation: Any, status: int, headers: Mapping[str, str], content: bytes) -> Exception | None:
    """Return the error for a body that was cut off or damaged, None for a whole one."""
    if _is_short(operation, status, headers, content):
        length = int(headers["content-length"])
        torn: Exception = exceptions.IncompleteReadError(actual_bytes=len(content), expected_bytes=length)
        return torn
    expected = headers.get("x-amz-crc32")
    if expected is None or operation.service_model.service_name != "dynamodb" or not expected.isdecimal():
        return None
    actual = zlib.crc32(content)
    if actual == int(expected[:16]):
        return None
    damaged: Exception = exceptions.ChecksumError(
        checksum_type="crc32", expected_checksum=expected, actual_checksum=actual
    )
    return damaged


def _is_short(operation: Any, status: int, headers: Mapping[str, str], content: bytes) -> bool:
    length = headers.get("content-length") or ""
    if status in _WITHOUT_BODY or operation.http.get("method") == "HEAD" or "transfer-encoding" in headers:
        return False
    return length.isascii() and length.isdecimal() and len(length) < 16 and int(length) > len(content)


def _is_page(operation: Any, content: bytes) -> bool:
    """Return whether an error in a protocol of XML is none; botocore knows pages that begin with `<html>` alone."""
    model = operation.service_model
    protocol = getattr(model, "resolved_protocol", None) or model.metadata.get("protocol")
    text = content.lstrip()
    return protocol in ("query", "ec2") and (text[:1] != b"<" or text[:2] == b"<!")


def _is_marked(operation: Any, code: str) -> bool:
    """Return whether the model marks the error with this code as one to retry."""
    for shape in operation.error_shapes if code else ():
        if code == (shape.metadata.get("error", {}).get("code") or shape.name):
            return shape.metadata.get("retryable") is not None
    return False
