"""HTTP requests: the policy for one, and what follows its failures, by the exchange that every adapter drives."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from forbear.answers import unreadable
from forbear.answers.answer import LOST, NOT_SENT, Answer, FailureOutcome, wait_text, why_retried
from forbear.cli.kit.output import BadInput
from forbear.cli.kit.profiles import ProfileChoice
from forbear.core.decide import Reason
from forbear.core.redact import hide, printable
from forbear.core.service import Judgement
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.exchange import Exchange
from forbear.exchange.http.send import Fixed
from forbear.http.idempotency import IdempotencyKey
from forbear.http.request import Request
from forbear.http.vouch import NO_VOUCH, Vouch, cure, vouched
from forbear.policy import Policy
from forbear.run.listeners import muted
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110

if TYPE_CHECKING:
    from forbear.http.request import HttpService

UNKNOWN_SERVICE = "rfc9110"
"""The service that judges a request if no service knows its host."""

_TRANSIENT = (408, 429, 500, 502, 503, 504)
_RARE = (501, 505, 508)  # listed only for the profiles that retry them
_OTHERS = (400, 401, 403, 404, 409, 412)
_RETRY_AFTER = "30"  # seconds
_LONGEST_VERB = 24  # characters
_CONFLICTS = ("ABORTED", "ALREADY_EXISTS")  # what the body of a 409 may say


@dataclass(frozen=True)
class Overrides:
    """The options of a user that change an answer: a vouch, a key that each write gets, and limits and waits."""

    vouch: Vouch = NO_VOUCH
    key: IdempotencyKey | None = None
    adjust: Callable[[Policy], Policy] | None = None


def answer(request: Request, service: str | None, profile: ProfileChoice, overrides: Overrides | None = None) -> Answer:
    """Return which failures of a request are retried, and why.

    `service` names the service that judges it, None for the one that its host belongs to (unknown: RFC 9110).
    """
    overrides = overrides or Overrides()
    policy, judge = policy_for(request, service, profile)
    if overrides.adjust is not None:
        policy = overrides.adjust(policy)
    if judge != RFC9110:
        overrides = replace(overrides, key=None)  # as in the clients
    judgement = vouched(judge.classify(request), request, overrides.vouch)
    path = shown_path(request)
    with muted():  # these attempts are not real, so no listener is called
        outcomes = list(_outcomes(request, judgement, policy, judge, overrides))
    if overrides.key is not None and judgement.refused is None:
        judgement = judgement.replace(repeatable=True)
    return Answer(
        f"{request.method} {request.host}{path}",
        {"method": request.method, "host": request.host, "path": path},
        profile.name,
        policy,
        judgement,
        outcomes,
        judgement.maybe_done,
        warnings=unreadable.of_request(request, judgement),
        cure=cure(request),
        more={"session": judgement.session},
    )


def policy_for(request: Request, service: str | None, profile: ProfileChoice) -> "tuple[Policy, HttpService]":
    """Return the policy for a request, and the service that judges it.

    `service` is its name, None for the one that the profile names, else the one that the host belongs to (unknown: RFC
    9110). Raises BadInput if there is no such profile, or if the service does not judge HTTP requests.
    """
    if service is None:
        service = profile.service
    else:
        profile.check_service(service, f"`--service {service}`")
    if service is None:
        known = registry.find(request.host, path_of(request))
        service = UNKNOWN_SERVICE if known is None else known.name
    policy = _policy(service, profile)
    if policy.service is None:
        raise BadInput(f"{service} does not judge HTTP requests", "name a --service or a --profile of an HTTP API")
    return policy, policy.service


def path_of(request: Request) -> str:
    """Return the path of a request without the query, which may contain secrets."""
    return request.target.partition("?")[0]


def shown_path(request: Request) -> str:
    """Return the path of a request for display: without secrets such as the token of a webhook.

    The verb of a custom method stays (`secret:getIamPolicy`), although it stands where a secret could stand: a short
    word after a path that has none.
    """
    host, path = printable(request.host), printable(path_of(request))
    before, colon, verb = path.rpartition(":")
    if colon and verb.isalpha() and len(verb) <= _LONGEST_VERB and hide(f"{host}{before}") == f"{host}{before}":
        return path
    return hide(f"{host}{path}").removeprefix(host)


@cache
def _policy(service: str, profile: ProfileChoice) -> Policy:
    return profile.policy(service)


def _outcomes(
    request: Request, judgement: Judgement, policy: Policy, service: "HttpService", overrides: Overrides
) -> Iterator[FailureOutcome]:
    """Yield what follows each kind of failure of the first attempt: connection errors, error statuses and conflicts."""

    def exchange() -> Exchange:
        key, vouch = overrides.key, overrides.vouch
        return Exchange(policy, service, lambda: request, Fixed(b""), Start(), key=key, vouch=vouch)

    def after_error(failure: str, verdict: Verdict, status: int | None = None) -> FailureOutcome:
        started = exchange()
        return _outcome(failure, status, verdict, started.failed(ConnectionError(failure), verdict), started)

    def after_response(status: int, headers: Mapping[str, str]) -> FailureOutcome:
        started = exchange()
        failure = f"{status} with Retry-After: {headers['retry-after']}" if headers else str(status)
        verdict = service.verdict(judgement, status, headers)
        if overrides.vouch.is_refusal(judgement, request, status, headers):
            verdict = NOT_EXECUTED if verdict is None else verdict.replace(kind=Kind.NOT_EXECUTED)
        return _outcome(failure, status, verdict, started.answered(status, headers, None), started)

    yield after_error(NOT_SENT, NOT_EXECUTED)
    yield after_error(LOST, TRANSIENT)
    yield from (after_response(status, {}) for status in _TRANSIENT)
    yield from (outcome for status in _RARE if (outcome := after_response(status, {})).retried)
    yield after_response(429, {"retry-after": _RETRY_AFTER})
    yield from (after_response(status, {}) for status in _OTHERS)
    if judgement.mutation and not judgement.session:
        verdicts = {name: _conflict_verdict(service, judgement, name) for name in _CONFLICTS}
        if CONFLICT in verdicts.values():
            yield from (after_error(f"409 {name}", verdict, 409) for name, verdict in verdicts.items() if verdict)
        else:
            yield after_error("conflict", CONFLICT)


def _conflict_verdict(service: "HttpService", judgement: Judgement, name: str) -> Verdict | None:
    """Return the verdict on a 409 with the error status `name` ("ABORTED") in its JSON body; None for a success."""
    return service.verdict(judgement, 409, {}, lambda: json.dumps({"error": {"status": name}}).encode())


def _outcome(
    failure: str, status: int | None, verdict: Verdict | None, delay: float | None, exchange: Exchange
) -> FailureOutcome:
    judgement = exchange.judgement
    if verdict is None:
        why = "it means success"
    elif delay is None:
        why = Reason.PERMANENT.value if exchange.report is None else exchange.report.text
    elif judgement.session and not judgement.repeatable and verdict.kind is Kind.TRANSIENT:
        why = f"the client queries the session, and sends the rest{wait_text(verdict)}"
    elif verdict.kind is Kind.TRANSIENT and not judgement.repeatable:  # no word, so a key
        why = f"transient, and the API drops duplicates by the key{wait_text(verdict)}"
    else:
        why = why_retried(verdict, judgement)
    return FailureOutcome(failure, status, delay is not None, why)
