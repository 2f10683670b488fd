"""The verdicts on errors of clients that retry by themselves: the SDKs of OpenAI and Anthropic, Kafka.

A verdict is `exhausted` if the client has already repeated the request: another loop around it would multiply.
"""

from collections.abc import Mapping
from typing import Any

from forbear.apis import SDK_STATUSES
from forbear.core.chain import arguments_of, read
from forbear.core.check import is_mapping
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.services.errors import headers_of, lower_names, status_of, wait_of
from forbear.waits import add_wait

_EXHAUSTED = Verdict(Kind.TRANSIENT, exhausted=True)

_SDKS = frozenset({"openai.APIError", "anthropic.APIError"})
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


def sdk_verdict(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error of the SDKs of OpenAI and Anthropic, None for any other error.

    A used-up quota is permanent. Then the header x-should-retry counts, then the status.
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
    if wish != "true" and status is not None and status not in SDK_STATUSES:
        return PERMANENT
    verdict = Verdict(Kind.TRANSIENT, throttled=status in (429, 503, 529), exhausted=was_retried_by_sdk(error))
    return add_wait(verdict, wait_of(error))


def is_lost_by_sdk(names: frozenset[str]) -> bool:
    """Return whether an error is an SDK's for a request without a response; it has the reason as its cause."""
    return bool(names & _SDK_LOST)


def was_retried_by_sdk(error: BaseException) -> bool:
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
