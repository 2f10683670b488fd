"""HTTP requests: the policy for one, and what follows its failures, as every adapter decides.

A test compares the outcomes with those of `forbear.exchange.http`, which adapters drive.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from forbear import apis
from forbear.answers import condition_warnings
from forbear.answers.answer import LOST, NOT_SENT, Answer, FailureOutcome, outcome_of, reason, wait_text
from forbear.answers.errors import NoAnswer
from forbear.answers.grpc import find_rule
from forbear.answers.profile import ProfileChoice
from forbear.apis import find_api
from forbear.core.dataclass import dataclass, replace
from forbear.core.service import Judgement, cure_for, why_not
from forbear.core.verdict import CONFLICT, NOT_EXECUTED, TRANSIENT, Kind, Verdict
from forbear.http import ranges
from forbear.http.api import IN_USE, Api, IdempotencyKey
from forbear.http.patterns import is_for_its_host
from forbear.http.request import Request
from forbear.http.vouch import NO_VOUCH, Vouch, apply_vouch, option_for
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110
from forbear.text.redact import hide, printable
from forbear.waits import add_wait, find_wait

if TYPE_CHECKING:
    from forbear.http.request import HttpService

UNKNOWN_SERVICE = "rfc9110"

_TRANSIENT = (408, 429, 500, 502, 503, 504)
_RARE = (501, 505, 508)  # listed only for the profiles that retry them
_OTHERS = (400, 401, 403, 404, 409, 412)
_RETRY_AFTER = "30"  # seconds
_LONGEST_VERB = 24  # characters
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_BY_KEY = "the API drops duplicates by the key"
_CONFLICTS = ("ABORTED", "ALREADY_EXISTS")  # what the body of a 409 may say


@dataclass(frozen=True, slots=True)
class Overrides:
    """The options of a user that change an answer: what they vouch for, and limits and waits.

    >>> vouch = Vouch(safe="POST https://api.example.com/search")
    >>> request = Request("POST", "api.example.com", "/search")
    >>> explain_request(request, None, ProfileChoice("default"), Overrides(vouch)).judgement.vouched
    True
    """

    vouch: Vouch = NO_VOUCH
    adjust: Callable[[Policy], Policy] | None = None


def answer(request: Request, service: str | None, profile: ProfileChoice, overrides: Overrides | None = None) -> Answer:
    """Return which failures of a request are retried, and why, by the `service` named or that of its host.

    >>> request = Request("DELETE", "storage.googleapis.com", "/storage/v1/b/my-bucket")
    >>> answer = explain_request(request, None, ProfileChoice("default"))
    >>> answer.judgement.operation, answer.why
    ('storage.buckets.delete', 'a repeat is harmless')
    """
    overrides = overrides or Overrides()
    policy, judge = policy_for(request, service, profile)
    if overrides.adjust is not None:
        policy = overrides.adjust(policy)
    judgement = apply_vouch(judge.classify(request), request, overrides.vouch)
    own = overrides.vouch.find_own_api(request.origin)
    key = None if own is None or judge != RFC9110 or judgement.refused is not None else own.key
    if key is not None and not key.add and key.header.lower() not in request.headers:
        key = None
    option, path = option_for(request), hide_in_path(request)
    has_cure = cure_for(judgement, option) != ""
    outcomes = tuple(_outcomes(request, judgement, policy, judge, overrides.vouch, key))
    why = reason(judgement)
    if key is not None and not judgement.repeatable:
        judgement, why, has_cure = judgement.replace(repeatable=True), _BY_KEY, False
    return Answer(
        f"{request.method} {request.host}{path}",
        {"method": request.method, "host": request.host, "path": path},
        profile.name,
        policy,
        judgement,
        why,
        outcomes,
        option if has_cure else None,
        judgement.maybe_done,
        warnings=condition_warnings.find_in_request(request, judgement),
        rule=find_rule(request.host, request.method, path_of(request)) if judgement.operation is None else None,
        more={"session": judgement.session, "api": _name_api(request, own)},
    )


def _name_api(request: Request, own: Api | None) -> str | None:
    """Return the name of the API that says what responses mean: that of `forbear.apis`, or the user's; None if none."""
    api = find_api(request.origin, own)
    known = next((name for name, value in vars(apis).items() if value is api and value is not apis.UNKNOWN), None)
    if known is not None:
        return f"forbear.apis.{known} ({api.origin})"
    return None if own is None else f"yours ({own.origin})"


def policy_for(request: Request, service: str | None, profile: ProfileChoice) -> "tuple[Policy, HttpService]":
    """Return the policy for a request, and the service that judges it: by name, else of the profile, else of the host.

    Raises NoAnswer if there is no such profile, or if the service does not judge HTTP requests.

    >>> request = Request("DELETE", "storage.googleapis.com", "/storage/v1/b/my-bucket")
    >>> policy, service = policy_for_request(request, None, ProfileChoice("default"))
    >>> service.name
    'cloud_storage'
    """
    if service is None:
        service = profile.service
    else:
        profile.check_service(service, f"the service {service}")
    if service is None:
        known = registry.find(request.host, path_of(request))
        service = UNKNOWN_SERVICE if known is None else known.name
    policy = _policy(service, profile)
    if policy.service is None:
        raise NoAnswer(f"{service} does not judge HTTP requests", "name a `service` or a `profile` of an HTTP API")
    return policy, policy.service


def path_of(request: Request) -> str:
    """Return the path of a request without the query, which may contain secrets."""
    return request.target.partition("?")[0]


def hide_in_path(request: Request) -> str:
    """Return the path of a request for display: without secrets such as the token of a webhook.

    The verb of a custom method stays (`secret:getIamPolicy`): a short word after a path that has no secret.

    >>> hide_in_path(Request("POST", "hooks.slack.com", "/services/T0000/B0000/VerySecret123"))
    '/[redacted]'
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
    request: Request,
    judgement: Judgement,
    policy: Policy,
    service: "HttpService",
    vouch: Vouch,
    key: IdempotencyKey | None,
) -> Iterator[FailureOutcome]:
    """Yield what follows each kind of failure of the first attempt: connection errors, error statuses and conflicts."""
    unsafe = why_not(judgement, "the request") + cure_for(judgement, option_for(request))
    why = None  # another reason for retries than the judgement
    if judgement.session and not judgement.repeatable and ranges.read_sent_range(request.headers) is not None:
        why = "the client queries the session, and sends the rest"
    elif key is not None and not judgement.repeatable:
        why = f"transient, and {_BY_KEY}"
    decided = judgement if why is None else judgement.replace(repeatable=True)
    api = find_api(request.origin, vouch.find_own_api(request.origin))
    may_refuse = judgement.refused is None and not judgement.session and is_for_its_host(request)

    def outcome_after(failure: str, verdict: Verdict | None, status: int | None = None) -> FailureOutcome:
        outcome = outcome_of(failure, verdict, policy, decided, unsafe, status=status)
        if why is None or verdict is None or verdict.kind is not Kind.TRANSIENT or not outcome.retried:
            return outcome
        return replace(outcome, why=why + wait_text(verdict))

    def outcome_of_response(status: int, headers: Mapping[str, str] = _NO_HEADERS) -> FailureOutcome:
        failure = f"{status} with Retry-After: {headers['retry-after']}" if headers else str(status)
        verdict = service.verdict(judgement, status, headers)
        if verdict is not None:
            wait = find_wait(headers, status, host=request.host, units=api.wait_headers)
            verdict = add_wait(verdict, wait)
            verdict = api.refine(verdict, status, headers, has_wait=wait is not None, may_refuse=may_refuse)
        if status == IN_USE and key is not None and key.header.lower() in request.headers:
            verdict = TRANSIENT  # a new key is in use only after an attempt whose outcome is unknown
        return outcome_after(failure, verdict, status)

    yield outcome_after(NOT_SENT, NOT_EXECUTED)
    yield outcome_after(LOST, TRANSIENT)
    yield from map(outcome_of_response, _TRANSIENT)
    yield from (outcome for status in _RARE if (outcome := outcome_of_response(status)).retried)
    yield outcome_of_response(429, {"retry-after": _RETRY_AFTER})
    yield from map(outcome_of_response, _OTHERS)
    if judgement.mutation and not judgement.session:
        verdicts = {name: _conflict_verdict(service, judgement, name) for name in _CONFLICTS}
        if CONFLICT in verdicts.values():
            yield from (
                outcome_after(f"409 {name}", verdict, 409) for name, verdict in verdicts.items() if verdict is not None
            )
        else:
            yield outcome_after("conflict", CONFLICT)


def _conflict_verdict(service: "HttpService", judgement: Judgement, name: str) -> Verdict | None:
    """Return the verdict on a 409 with the error status `name` ("ABORTED") in its JSON body; None for a success."""
    return service.verdict(judgement, 409, {}, lambda: json.dumps({"error": {"status": name}}).encode())
