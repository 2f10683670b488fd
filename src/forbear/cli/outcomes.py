"""What follows each kind of failure of a request: asked of the exchange that every adapter drives. Prints nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forbear.core.decide import Reason
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.exchange.body import Fixed
from forbear.exchange.exchange import Exchange, Start
from forbear.http.request import Judgement, Request
from forbear.policy import Policy

if TYPE_CHECKING:
    from forbear.http.request import Service

_STATUSES = (408, 429, 500, 502, 503, 504, 400, 401, 403, 404, 412)
_RETRY_AFTER = "30"  # seconds


@dataclass(frozen=True)
class Outcome:
    """What follows one kind of failure, and why; `status` is that of the reply, None where there is none."""

    failure: str
    status: int | None
    retried: bool
    why: str


def outcomes(request: Request, policy: Policy, service: "Service") -> list[Outcome]:
    """What follows each kind of failure of the first attempt."""
    judgement = service.classify(request)
    found = [
        _after_error("connection refused, DNS or TLS failure", NOT_EXECUTED, request, policy, service),
        _after_error("reset or timeout after sending", TRANSIENT, request, policy, service),
    ]
    replies: list[tuple[int, dict[str, str]]] = [(status, {}) for status in _STATUSES]
    replies.insert(_STATUSES.index(400), (429, {"retry-after": _RETRY_AFTER}))
    found += [_after_reply(status, headers, request, policy, service) for status, headers in replies]
    if judgement.mutation and not judgement.session:
        found.append(_after_error("conflict", CONFLICT, request, policy, service))
    return found


def _after_error(failure: str, verdict: Verdict, request: Request, policy: Policy, service: "Service") -> Outcome:
    exchange = Exchange(policy, service, lambda: request, Fixed(b""), Start())
    delay = exchange.failed(ConnectionError(failure), verdict)
    return _outcome(failure, None, verdict, delay, exchange)


def _after_reply(
    status: int, headers: Mapping[str, str], request: Request, policy: Policy, service: "Service"
) -> Outcome:
    exchange = Exchange(policy, service, lambda: request, Fixed(b""), Start())
    verdict = service.verdict(exchange.judgement, status, headers)
    delay = exchange.answered(status, headers, None)
    failure = f"{status} with Retry-After: {headers['retry-after']}" if headers else str(status)
    return _outcome(failure, status, verdict, delay, exchange)


def _outcome(
    failure: str, status: int | None, verdict: Verdict | None, delay: float | None, exchange: Exchange
) -> Outcome:
    if verdict is None:
        why = "it means success"
    elif delay is not None:
        why = _why_retried(verdict, exchange.judgement)
    else:
        why = Reason.PERMANENT.value if exchange.report is None else exchange.report.text
    return Outcome(failure, status, delay is not None, why)


def _why_retried(verdict: Verdict, judgement: Judgement) -> str:
    if verdict.kind is Kind.NOT_EXECUTED:
        return "it was not executed"
    asked = verdict.retry_after
    wait = "" if asked is None else f", after {asked:g} s or more as the server asks"
    if judgement.session and not judgement.repeatable:
        return f"the session is asked what it has, and sent the rest{wait}"
    if judgement.met is not None:
        return f"it may pass, and the condition keeps a repeat from doing harm{wait}"
    return f"it may pass, and a repeat does no harm{wait}"
