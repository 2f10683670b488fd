"""HTTP requests: the policy for one, and what follows its failures, asked of the exchange that every adapter drives."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from forbear.cli import profiles
from forbear.cli.explain.answer import Answer
from forbear.cli.explain.outcome import LOST, NOT_SENT, Outcome, why_retried
from forbear.cli.output import BadInput
from forbear.core.decide import Reason
from forbear.core.service import Judgement
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.exchange.call import Start
from forbear.exchange.http.body import Fixed
from forbear.exchange.http.exchange import Exchange
from forbear.http.request import Request
from forbear.policy import Policy
from forbear.run.listeners import muted
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110

if TYPE_CHECKING:
    from forbear.http.request import HttpService

_TRANSIENT = (408, 429, 500, 502, 503, 504)
_OTHERS = (400, 401, 403, 404, 409, 412)
_RETRY_AFTER = "30"  # seconds
_CONFLICTS = ("ABORTED", "ALREADY_EXISTS")  # what the body of a 409 may say


def answer(request: Request, service: str | None, profile: str) -> Answer:
    """What is to be said of a request; `service` is a name, None for the one that its host tells."""
    policy, judge = chosen(request, service, profile)
    judgement = judge.classify(request)
    path = path_of(request)
    with muted():  # nothing of it happens
        outcomes = list(_outcomes(request, judgement, policy, judge))
    return Answer(
        f"{request.method} {request.host}{path}",
        {"method": request.method, "host": request.host, "path": path},
        profile,
        policy,
        judgement,
        outcomes,
        judgement.maybe_done,
        more={"session": judgement.session},
    )


def chosen(request: Request, service: str | None, profile: str) -> "tuple[Policy, HttpService]":
    """The policy for a request, and who judges it."""
    if service is None:
        service = (registry.find(request.host, path_of(request)) or RFC9110).name
    policy = _policy(service, profile)
    if policy.service is None:
        raise BadInput(f"{service} does not judge HTTP requests", "leave --service out, or name the service of an API")
    return policy, policy.service


def path_of(request: Request) -> str:
    """The path of a request without the query, which may hold secrets."""
    return request.target.partition("?")[0]


@cache
def _policy(service: str, profile: str) -> Policy:
    return profiles.policy(f"{service}.{profile}")


def _outcomes(request: Request, judgement: Judgement, policy: Policy, service: "HttpService") -> Iterator[Outcome]:
    """What follows each kind of failure of the first attempt."""

    def exchange() -> Exchange:
        return Exchange(policy, service, lambda: request, Fixed(b""), Start())

    def after_error(failure: str, verdict: Verdict, status: int | None = None) -> Outcome:
        begun = exchange()
        return _outcome(failure, status, verdict, begun.failed(ConnectionError(failure), verdict), begun)

    def after_reply(status: int, headers: Mapping[str, str]) -> Outcome:
        begun = exchange()
        failure = f"{status} with Retry-After: {headers['retry-after']}" if headers else str(status)
        verdict = service.verdict(judgement, status, headers)
        return _outcome(failure, status, verdict, begun.answered(status, headers, None), begun)

    yield after_error(NOT_SENT, NOT_EXECUTED)
    yield after_error(LOST, TRANSIENT)
    yield from (after_reply(status, {}) for status in _TRANSIENT)
    yield after_reply(429, {"retry-after": _RETRY_AFTER})
    yield from (after_reply(status, {}) for status in _OTHERS)
    if judgement.mutation and not judgement.session:
        said = {name: _says(service, judgement, name) for name in _CONFLICTS}
        if CONFLICT in said.values():
            yield from (after_error(f"409 {name}", verdict, 409) for name, verdict in said.items() if verdict)
        else:
            yield after_error("conflict", CONFLICT)


def _says(service: "HttpService", judgement: Judgement, name: str) -> Verdict | None:
    """What a 409 means whose body has this status."""
    return service.verdict(judgement, 409, {}, lambda: json.dumps({"error": {"status": name}}).encode())


def _outcome(
    failure: str, status: int | None, verdict: Verdict | None, delay: float | None, exchange: Exchange
) -> Outcome:
    judgement = exchange.judgement
    if verdict is None:
        why = "it means success"
    elif delay is None:
        why = Reason.PERMANENT.value if exchange.report is None else exchange.report.text
    elif judgement.session and not judgement.repeatable and verdict.kind is Kind.TRANSIENT:
        asked = verdict.retry_after
        wait = "" if asked is None else f", after {asked:g} s or more as the server asks"
        why = f"the session is asked what it has, and sent the rest{wait}"
    else:
        why = why_retried(verdict, judgement)
    return Outcome(failure, status, delay is not None, why)
