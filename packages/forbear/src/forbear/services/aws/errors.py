"""The meaning of AWS's errors: codes, statuses, waits, and the exceptions of botocore; and the recommended policy."""

from collections.abc import Callable, Mapping
from typing import Any

from forbear.core.backoff import Exponential
from forbear.core.chain import read, traceback_of
from forbear.core.check import is_list, is_mapping
from forbear.core.limits import Limits
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Verdict
from forbear.policy import Policy
from forbear.services.errors import lower_names, names_of
from forbear.waits import add_wait, find_wait

THROTTLED = frozenset({
    "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "TooManyRequestsException",
    "ProvisionedThroughputExceededException", "TransactionInProgressException", "RequestLimitExceeded",
    "BandwidthLimitExceeded", "LimitExceededException", "RequestThrottled", "SlowDown", "PriorRequestNotComplete",
    "EC2ThrottledException",
})  # fmt: skip
"""The codes of throttled requests, those that botocore retries."""

_TRANSIENT = frozenset({
    "RequestTimeout", "RequestTimeoutException", "TransactionConflictException", "IDPCommunicationError",
})  # fmt: skip
_STATUSES = frozenset({500, 502, 503, 504})
_CONFLICTS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_LOST = frozenset({
    "botocore.exceptions.ConnectionError", "botocore.exceptions.HTTPClientError",
    "botocore.exceptions.IncompleteReadError",
})  # fmt: skip
_LOOPS = ("botocore.endpoint", "aiobotocore.endpoint")
_HOST = "x.amazonaws.com"
_DEEPEST = 500

_EXHAUSTED = Verdict(Kind.TRANSIENT, exhausted=True)


def verdict_of_response(
    parsed: Mapping[str, Any],
    status: int,
    headers: Mapping[str, str],
    now: Callable[[], float] | None = None,
    *,
    retried: bool = False,
) -> Verdict:
    """Return the verdict on an error response, as botocore has `parsed` it; `headers` has lower-case names.

    `retried` is True if the model of the operation marks the error as one to retry. `now` returns the wall clock in
    epoch seconds, for a moment in a response without a Date.
    """
    code = code_of(parsed)
    throttled = code in THROTTLED or status == 429
    if not (throttled or retried or code in _TRANSIENT or status in _STATUSES or _is_cancelled_by_others(code, parsed)):
        return PERMANENT
    return add_wait(Verdict(Kind.TRANSIENT, throttled=throttled), find_wait(headers, host=_HOST, now=now))


def code_of(parsed: Mapping[str, Any]) -> str:
    """Return the code of an error response, as botocore has parsed it; "" without one."""
    return _text(_mapping(parsed.get("Error")).get("Code"))


def verdict_of_exception(error: BaseException) -> Verdict:
    """Return the verdict on an exception of botocore around a function; PERMANENT for any other.

    It is `exhausted` if botocore itself has repeated the request.

    >>> from botocore.exceptions import ClientError
    >>> verdict = verdict_of_exception(ClientError({"Error": {"Code": "ThrottlingException"}}, "PutItem"))
    >>> verdict.kind.value, verdict.throttled
    ('transient', True)
    """
    return aws_verdict(error, names_of(error)) or PERMANENT


vars(verdict_of_exception)["is_of_service"] = True  # a policy with it repeats no function that may have been executed


def aws_verdict(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error of botocore whose class and bases have these full names, None for any other."""
    if names & _LOST:
        return _EXHAUSTED if _attempts_of_botocore(error) > 1 else TRANSIENT
    if "botocore.exceptions.ClientError" not in names:
        return PERMANENT if "botocore.exceptions.BotoCoreError" in names else None
    response = _mapping(read(error, "response"))
    metadata = _mapping(response.get("ResponseMetadata"))
    status: Any = metadata.get("HTTPStatusCode")
    verdict = verdict_of_response(response, status, lower_names(metadata.get("HTTPHeaders")))
    # With retries turned off the first attempt reaches the maximum, too.
    gave_up = metadata.get("MaxAttemptsReached") is True or metadata.get("RetryQuotaReached") is True
    return verdict.replace(exhausted=bool(verdict) and gave_up and metadata.get("RetryAttempts") != 0)


def policy() -> Policy:
    """Return the recommended policy for AWS.

    At most 5 attempts, each after a random part of 0.1, 0.2, 0.4 … 20 s. botocore's mode `standard` makes 3 attempts
    after parts of 0.05, 0.1 … 20 s. It differs as follows:

    - An operation that may have been executed is repeated only if that does no harm.
    - The same waits follow a throttled request, unless the server asks for longer ones. botocore begins at 1 s then.
    - There is no quota of its own: use a budget, which all clients of a process, or a fleet, can share.
    - A decorated function is not repeated if its request may have been executed, for the policy cannot see it.
    """
    backoff = Exponential(initial=0.1, multiplier=2, maximum=20, jitter="full")
    return Policy(verdict_of_exception, Limits(attempts=5), backoff)


def _is_cancelled_by_others(code: str, response: Mapping[str, Any]) -> bool:
    """Return whether a transaction of DynamoDB was cancelled by other writers alone, not by a failed condition."""
    reasons: Any = response.get("CancellationReasons")
    if code != "TransactionCanceledException" or not is_list(reasons):
        return False
    listed: list[object] = reasons[:100]
    codes = {_text(_mapping(reason).get("Code")) for reason in listed} - {"None", ""}
    return bool(codes) and codes <= _CONFLICTS


def _attempts_of_botocore(error: BaseException) -> int:
    """Return how many attempts botocore made before it raised `error`, from its loop in the traceback; 0 if unknown."""
    traceback = traceback_of(error)
    for _ in range(_DEEPEST):
        if traceback is None:
            break
        frame = traceback.tb_frame
        if frame.f_code.co_name == "_send_request" and frame.f_globals.get("__name__") in _LOOPS:
            attempts = frame.f_locals.get("attempts")
            return attempts if isinstance(attempts, int) else 0
        traceback = traceback.tb_next
    return 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if is_mapping(value) else {}  # type: ignore[return-value]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
