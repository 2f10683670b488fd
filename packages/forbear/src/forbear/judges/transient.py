"""`transient`: the judge of what was raised by a function that may call anything."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from socket import gaierror

from forbear.core.chain import arguments_of, cause_of, chain, context_of, read
from forbear.core.check import is_mapping
from forbear.core.dataclass import dataclass
from forbear.core.record import Record
from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Verdict, settle
from forbear.grpc.status import verdict as grpc_verdict
from forbear.http.status import verdict as http_verdict
from forbear.judges.clouds import is_lost_by_sdk, kafka_verdict, sdk_verdict, was_retried_by_sdk
from forbear.judges.databases import database_verdict
from forbear.services.aws.errors import aws_verdict
from forbear.services.errors import code_of, is_untrusted, names_of, status_of, transport_verdict, wait_of
from forbear.services.redis.errors import response_of, verdict_of_exception
from forbear.waits import add_wait

_EXHAUSTED = Verdict(Kind.TRANSIENT, exhausted=True)
_MOST_IN_ALL = 1000
"""The number of errors that are looked at for one verdict, all members of groups included."""

_GAVE_UP = frozenset({
    "google.api_core.exceptions.RetryError", "requests.exceptions.RetryError", "urllib3.exceptions.ResponseError",
    "tenacity.RetryError", "boto3.exceptions.RetriesExceededError", "s3transfer.exceptions.RetriesExceededError",
})  # fmt: skip
"""Errors by which other retry loops say that they gave up."""
_QUOTES_ITS_CONTEXT = frozenset({"boto3.exceptions.S3UploadFailedError"})
"""Errors that are raised over the failure that they are about, without naming it as their cause."""
_FOR_THE_CALLER = ("ASK", "MOVED", "NOSCRIPT", "REDIRECT")
_WRAPPED = ("orig", "last_exception", "reason")
"""Attributes in which libraries keep the error that they wrap."""


@dataclass(frozen=True, slots=True)
class TransientErrors(Record):
    """A judge of any client's errors, for `on` of `forbear.retry`; `forbear.transient` is the one to use.

    It reads an error's classes, attributes and codes, and then those of the errors that it wraps. The verdict is
    TRANSIENT for a failure that may go away, and CONFLICT for one that only a new read cures. All others are PERMANENT,
    also those that it does not know. The verdict is never NOT_EXECUTED: the function may have sent something before.
    With `one_transaction` the function is exactly one database transaction, and NOT_EXECUTED says that it was rolled
    back or never begun. Calling it never raises an Exception.

    >>> forbear.transient(ConnectionResetError()).kind.value
    'transient'
    """

    judges_errors = True  # and no values, so it is no `on_result`
    one_transaction: bool = False

    @property
    def transaction(self) -> "TransientErrors":
        """The judge for a function that is exactly one transaction of one database, and does nothing else."""
        return TransientErrors(one_transaction=True)

    def __repr__(self) -> str:
        return f"forbear.transient{'.transaction' if self.one_transaction else ''}"

    def __call__(self, error: Exception) -> Verdict:
        """Return the verdict on an error."""
        try:
            verdict = _verdict_of(error, _Search())
            if verdict.kind is Kind.NOT_EXECUTED and not (self.one_transaction and _is_first(error)):
                return verdict.replace(kind=Kind.TRANSIENT)
            return verdict
        except Exception:  # attributes of a foreign error may do anything
            return PERMANENT


class _Search:
    """The number of errors that may still be looked at for one verdict, so that a search among groups ends."""

    def __init__(self) -> None:
        self.left = _MOST_IN_ALL


def _verdict_of(error: BaseException, search: _Search) -> Verdict:
    """Return the verdict of the first error in a chain which says anything, else PERMANENT."""
    above: list[BaseException] = []
    for link in chain(error, _list_wrapped):
        search.left -= 1
        if search.left < 0:
            return PERMANENT
        above.append(link)
        verdict = _opinion(link, above, search)
        if verdict is not None:
            untrusted = verdict.kind is Kind.TRANSIENT and any(map(is_untrusted, chain(link, _list_wrapped)))
            return PERMANENT if untrusted else verdict
    return PERMANENT


def _list_wrapped(error: BaseException) -> list[object]:
    """Return what an error may wrap, the likeliest last; its context counts for few classes."""
    wrapped: list[object] = list(arguments_of(error)[:1])
    if names_of(error) & _QUOTES_ITS_CONTEXT:
        wrapped.append(context_of(error))
    keywords = read(error, "kwargs")
    if is_mapping(keywords):
        wrapped.append(keywords.get("error"))  # of botocore
    return [*wrapped, cause_of(error), *(read(error, name) for name in reversed(_WRAPPED))]


def _opinion(error: BaseException, above: list[BaseException], search: _Search) -> Verdict | None:
    """Return the verdict on one error by itself, None if it says nothing; it is the last one of `above`."""
    if isinstance(error, BaseExceptionGroup):
        return _combine(_verdict_of(member, search) for member in read(error, "exceptions"))  # pyright: ignore[reportUnknownArgumentType]
    names = names_of(error)
    if names & _GAVE_UP or ("urllib3.exceptions.MaxRetryError" in names and names_of(read(error, "reason")) & _GAVE_UP):
        return _EXHAUSTED
    verdict = database_verdict(error, names, above)
    if verdict is None:
        verdict = _first(aws_verdict, kafka_verdict, of=(error, names))
    if verdict is not None:
        return verdict
    if is_lost_by_sdk(names) and cause_of(error) is not None:
        return _judge_lost_by_sdk(error, search)
    verdict = _first(sdk_verdict, _redis_verdict, of=(error, names))
    return _wire_verdict(error) if verdict is None else verdict


def _first(
    *judges: Callable[[BaseException, frozenset[str]], Verdict | None], of: tuple[BaseException, frozenset[str]]
) -> Verdict | None:
    """Return the first verdict of these judges on an error and its names, None if they all know nothing."""
    return next((verdict for judge in judges if (verdict := judge(*of)) is not None), None)


def _combine(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on several failures at once: PERMANENT or CONFLICT if any is, else TRANSIENT."""
    listed: list[Verdict] = []
    for verdict in verdicts:
        if verdict.kind is Kind.PERMANENT:
            return PERMANENT
        listed.append(verdict)
    if any(verdict.kind is Kind.CONFLICT for verdict in listed):
        return CONFLICT
    longest = max(listed, key=lambda verdict: -1.0 if verdict.retry_after is None else verdict.retry_after)
    return Verdict(
        Kind.TRANSIENT,
        retry_after=longest.retry_after,
        throttled=any(verdict.throttled for verdict in listed),
        exhausted=any(verdict.exhausted for verdict in listed),
        wait_from=longest.wait_from,
    )


def _judge_lost_by_sdk(error: BaseException, search: _Search) -> Verdict:
    """Return the verdict on an SDK's error for a request without a response: that on its cause."""
    cause = cause_of(error)
    verdict = PERMANENT if cause is None else _verdict_of(cause, search)
    return verdict.replace(exhausted=was_retried_by_sdk(error)) if verdict.kind is Kind.TRANSIENT else verdict


def _redis_verdict(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error of redis-py or valkey-py, None for others; redirections are permanent here."""
    if not any(name.partition(".")[0] in ("redis", "valkey") for name in names):
        return None
    response = response_of(error)
    if response is not None and response.startswith(_FOR_THE_CALLER):
        return PERMANENT
    verdict = verdict_of_exception(error)
    return verdict.replace(kind=Kind.TRANSIENT) if verdict.kind is Kind.NOT_EXECUTED else verdict


def _wire_verdict(error: BaseException) -> Verdict | None:
    """Return the verdict on an error by its HTTP status, its gRPC code or as a transport error; None without these."""
    status = status_of(error)
    if status is not None:
        return add_wait(settle(http_verdict(status)), wait_of(error))
    code = code_of(error)
    if code is not None:
        return add_wait(settle(grpc_verdict(code)), wait_of(error))
    verdict = transport_verdict(error)
    if verdict.kind is Kind.PERMANENT:
        if "google.auth.exceptions.GoogleAuthError" in names_of(error) and read(error, "retryable") is True:
            return TRANSIENT
        return None
    if type(error) in (ConnectionRefusedError, gaierror):
        return verdict.replace(kind=Kind.NOT_EXECUTED)
    return verdict


def _is_first(error: BaseException) -> bool:
    """Return whether no other failure was being handled when `error` or one that it wraps was raised.

    A connection that is refused after another was lost proves nothing about what was sent over the first.
    """
    links = list(chain(error, _list_wrapped))
    known = {id(link) for link in links}
    search = _Search()
    for link in links:
        context = context_of(link)
        while context is not None and id(context) not in known:
            known.add(id(context))
            if _verdict_of(context, search).kind is Kind.TRANSIENT or search.left < 0:
                return False
            context = context_of(context)
    return True


def note_declined(error: Exception, operation: str) -> None:
    """Add a note to an error that the `on` of a policy declined, if `forbear.transient` would have retried it.

    A line of DEBUG says the same of the `operation`.
    """
    verdict = transient(error)
    if not verdict or verdict.exhausted or "forbear: " in str(read(error, "__notes__")):
        return
    text = f"not retried, because `on` declined {type(error).__name__}; forbear.transient would have retried it"
    with suppress(Exception):  # an error may refuse notes
        error.add_note(f"forbear: {text}")
    from logging import getLogger  # nothing else here needs it

    getLogger("forbear").debug("%s: %s", operation, text)


transient = TransientErrors()
"""The judge of any client's errors around a function; `transient.transaction` is the one around a transaction."""
