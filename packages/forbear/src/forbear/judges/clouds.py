"""The verdicts on errors of clients that retry by themselves: botocore, the SDKs of OpenAI and Anthropic, Kafka.

A verdict is `exhausted` if the client has already repeated the request: another loop around it would multiply.
"""

from collections.abc import Mapping
from typing import Any

from forbear.core.chain import arguments_of, read, traceback_of
from forbear.core.check import is_list, is_mapping
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.services.errors import headers_of, lower_names, status_of, wait_of
from forbear.waits import add_wait, find_wait

_THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)
_EXHAUSTED = Verdict(Kind.TRANSIENT, exhausted=True)

AWS_THROTTLED = frozenset({
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
})  # fmt: skip
"""AWS's error codes of throttled requests, those that botocore retries."""
AWS_TRANSIENT = frozenset({"RequestTimeout", "RequestTimeoutException", "TransactionConflictException"})
_AWS_STATUSES = frozenset({500, 502, 503, 504})
_AWS_CONFLICTS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_AWS_LOST = frozenset({
    "botocore.exceptions.ConnectionError", "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.IncompleteReadError",
})  # fmt: skip
_AWS_LOOPS = ("botocore.endpoint", "aiobotocore.endpoint")
_AWS_HOST = "x.amazonaws.com"
_DEEPEST = 500
"""The number of traceback entries that are searched."""

_SDKS = frozenset({"openai.APIError", "anthropic.APIError"})
_SDK_STATUSES = frozenset({408, 409, 429})  # and all from 500 on
_SDK_LOST = frozenset({"openai.APIConnectionError", "anthropic.APIConnectionError"})
QUOTA = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error", "account_deactivated",
    "access_terminated",
})  # fmt: skip
"""Codes and types of errors that only a payment or a person cures, although their status is 429."""
_BROKEN_STREAMS = frozenset({
    "api_error", "overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_error", "timeout_error",
})  # fmt: skip
"""Codes and types of errors within a stream that had begun, which have no status of their own."""

KAFKA_CODES = frozenset({
    -195, -193, -187, -185, -166,  # of the client: transport, name lookup, all brokers down, timeouts
    3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20,  # of the broker: elections, timeouts, too few replicas
})  # fmt: skip
"""Kafka's codes that a retry may cure, where confluent-kafka does not call an error retriable."""
_KAFKA_TIMED_OUT = -192  # a message for which the client used up its retries


def aws_verdict(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error of botocore, None for any other error."""
    if names & _AWS_LOST:
        return _EXHAUSTED if _attempts_of_botocore(error) > 1 else TRANSIENT
    if "botocore.exceptions.ClientError" not in names:
        return PERMANENT if "botocore.exceptions.BotoCoreError" in names else None
    response = _mapping(read(error, "response"))
    metadata = _mapping(response.get("ResponseMetadata"))
    code = _text(_mapping(response.get("Error")).get("Code"))
    status = metadata.get("HTTPStatusCode")
    throttled = code in AWS_THROTTLED or status == 429
    if not (throttled or code in AWS_TRANSIENT or status in _AWS_STATUSES or _cancelled_by_others(code, response)):
        return PERMANENT
    # With retries turned off the first attempt reaches the maximum, too.
    gave_up = metadata.get("MaxAttemptsReached") is True or metadata.get("RetryQuotaReached") is True
    verdict = Verdict(Kind.TRANSIENT, throttled=throttled, exhausted=gave_up and metadata.get("RetryAttempts") != 0)
    return add_wait(verdict, find_wait(lower_names(metadata.get("HTTPHeaders")), host=_AWS_HOST))


def _cancelled_by_others(code: str, response: Mapping[str, Any]) -> bool:
    """Return whether a transaction of DynamoDB was cancelled by other writers alone, not by a failed condition."""
    reasons: Any = response.get("CancellationReasons")
    if code != "TransactionCanceledException" or not is_list(reasons):
        return False
    listed: list[object] = reasons[:100]
    codes = {_text(_mapping(reason).get("Code")) for reason in listed} - {"None", ""}
    return bool(codes) and codes <= _AWS_CONFLICTS


def _attempts_of_botocore(error: BaseException) -> int:
    """Return how many attempts botocore made before it raised `error`, from its loop in the traceback; 0 if unknown."""
    traceback = traceback_of(error)
    for _ in range(_DEEPEST):
        if traceback is None:
            break
        frame = traceback.tb_frame
        if frame.f_code.co_name == "_send_request" and frame.f_globals.get("__name__") in _AWS_LOOPS:
            attempts = frame.f_locals.get("attempts")
            return attempts if isinstance(attempts, int) else 0
        traceback = traceback.tb_next
    return 0


def sdk_verdict(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error of the SDKs of OpenAI and Anthropic, None for any other error.

    A used-up quota is permanent. Then the header x-should-retry counts, then the status. Returns None for a failed
    connection with a cause, too: then the cause counts.
    """
    if not names & _SDKS:
        return None
    body = _mapping(read(error, "body"))
    inner = _mapping(body.get("error"))
    kinds = {_text(read(error, name)) for name in ("code", "type", "error_code")}
    kinds |= {_text(place.get(name)) for place in (body, inner) for name in ("code", "type")}
    if kinds & QUOTA:
        return PERMANENT
    headers, status = headers_of(error), status_of(error)
    wish = headers.get("x-should-retry")
    if wish == "false":
        return PERMANENT
    if status is None and not names & _SDK_LOST:
        return TRANSIENT if wish == "true" or kinds & _BROKEN_STREAMS else PERMANENT
    if wish != "true" and status is not None and status not in _SDK_STATUSES and status < 500:
        return PERMANENT
    verdict = Verdict(Kind.TRANSIENT, throttled=status in (429, 503, 529), exhausted=retried_by_sdk(error))
    return add_wait(verdict, wait_of(error))


def is_lost_by_sdk(names: frozenset[str]) -> bool:
    """Return whether an error is an SDK's for a request without a response; it has the reason as its cause."""
    return bool(names & _SDK_LOST)


def retried_by_sdk(error: BaseException) -> bool:
    """Return whether the SDK had repeated the request: it counts its retries in a header of the request."""
    headers = lower_names(read(read(error, "request"), "headers"))
    count = headers.get("x-stainless-retry-count", "")
    return count[:9].isdecimal() and int(count[:9]) > 0


def kafka_verdict(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error of confluent-kafka, kafka-python or aiokafka, None for any other error."""
    if names & {"kafka.errors.KafkaError", "aiokafka.errors.KafkaError"}:
        return TRANSIENT if read(error, "retriable") is True else PERMANENT
    if not names & {"cimpl.KafkaException", "confluent_kafka.cimpl.KafkaException"}:
        return None
    arguments = arguments_of(error)
    details = arguments[0] if arguments else None
    if _call(details, "fatal") is True:
        return PERMANENT
    code = _call(details, "code")
    if code == _KAFKA_TIMED_OUT:
        return _EXHAUSTED
    return TRANSIENT if _call(details, "retriable") is True or code in KAFKA_CODES else PERMANENT


def _call(thing: object, name: str) -> object:
    """Return the result of the method `name` of `thing`, None if there is none."""
    method = read(thing, name)
    return method() if callable(method) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if is_mapping(value) else {}  # type: ignore[return-value]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
