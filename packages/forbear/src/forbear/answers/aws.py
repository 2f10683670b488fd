"""Calls of AWS: find the operation in botocore's models, and say what follows each failure. No value is printed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any, cast

from forbear.answers import tables
from forbear.answers.answer import LOST, NOT_SENT, Answer, FailureOutcome, outcome_of, reason, unsafe_text
from forbear.answers.errors import NoAnswer
from forbear.answers.profile import ProfileChoice
from forbear.core.service import Judgement, cure_for, why_not
from forbear.core.verdict import NOT_EXECUTED, TRANSIENT, Kind
from forbear.evidence.sent import AwsCall
from forbear.policy import Policy
from forbear.services import aws
from forbear.services.at_least_once import option_for
from forbear.services.aws.errors import verdict_of_response
from forbear.services.aws.service import classify
from forbear.services.aws.table import NAME, find_refusals
from forbear.services.policies import RECOMMENDED, find_policy
from forbear.text.duration import show

_CUT = "a body that was cut off"
_STATUSES = (500, 502, 503, 504, 429, 400, 403, 404, 409)
_FILLED = "(filled by botocore)"


def parse_call(words: Sequence[str], parameters: object) -> AwsCall:
    """Return the call of a service and an operation, such as `dynamodb UpdateItem`, with its parameters, or None.

    The operation may be written as a method of boto3, `update_item`. Raises NoAnswer for names that botocore does not
    know, and TypeError for parameters that are no mapping.
    """
    if parameters is not None and not isinstance(parameters, Mapping):
        raise TypeError(f"`parameters` must map names to values, got a {type(parameters).__qualname__}")
    if len(words) == 1:
        words = words[0].split(".")  # as `safe` has it: "sqs.SendMessage"
    if len(words) != 2:
        raise NoAnswer(
            f"a call of AWS is a service and an operation, got {len(words)} words", "such as sqs SendMessage"
        )
    service, operation = words[0].lower(), words[1]
    if service not in services():
        raise NoAnswer(f"no such service of AWS: {service}", _similar(service, services()))
    model = _service_model(service)
    names = {name.lower(): name for name in model.operation_names}
    name = names.get(operation.replace("_", "").lower())
    if name is None:
        raise NoAnswer(f"no such operation of {service}: {operation}", _similar(operation, tuple(names.values())))
    given = cast("Mapping[str, Any]", parameters or {})
    known = model.operation_model(name)
    return AwsCall(f"{service}.{name}", known, {**dict.fromkeys(known.idempotent_members, _FILLED), **given})


def parse_parameters(text: str) -> dict[str, object]:
    """Return the parameters in a JSON object; raise NoAnswer for any other text."""
    try:
        parameters: object = json.loads(text)
    except (ValueError, RecursionError):
        raise NoAnswer("`parameters` must be a JSON object: it cannot be read", "put it in single quotes") from None
    if not isinstance(parameters, dict):
        raise NoAnswer("`parameters` must be a JSON object, got another value", 'such as \'{"TableName": "t"}\'')
    return cast("dict[str, object]", parameters)


def answer(call: AwsCall, profile: ProfileChoice) -> Answer:
    """Return which failures of a call are retried, and why, under the policy called `profile`."""
    policy = _find_policy(profile)
    judgement = classify(call.model, call.parameters)
    service, _, operation = call.operation.partition(".")
    option = option_for(call, f'safe="{call.operation}"')
    cure = cure_for(judgement, option)
    names = sorted(name for name, value in call.parameters.items() if value != _FILLED)
    filled = sorted(name for name, value in call.parameters.items() if value == _FILLED)
    remarks = [] if tables.entry(judgement.service, judgement.operation) else [judgement.why]
    if filled:
        remarks.append(f"botocore fills {', '.join(filled)}, equal in all attempts of a call")
    if judgement.span is not None:
        remarks.append(f"the service remembers the key for {show(judgement.span)}: no later attempt is made")
    return Answer(
        f"{call.operation} ({len(names)} parameter{'' if len(names) == 1 else 's'})",
        {"service": service, "operation": operation, "parameters": names},
        profile.name,
        policy,
        judgement,
        reason(judgement),
        tuple(_outcomes(call, judgement, policy, unsafe_text(judgement, why_not(judgement, "the call")) + cure)),
        None if judgement.repeatable else option,
        judgement.maybe_done,
        tuple(remarks),
    )


@cache
def services() -> tuple[str, ...]:
    """Return the names of all services that the installed botocore knows; raise NoAnswer without botocore."""
    names: list[str] = _loader().list_available_services("service-2")
    return tuple(names)


def operations(service: str) -> tuple[str, ...]:
    """Return the names of the operations of a service, () for one that botocore does not know."""
    return tuple(_service_model(service).operation_names) if service in services() else ()


@cache
def _loader() -> Any:
    try:
        loaders: Any = import_module("botocore.loaders")
    except ImportError:
        raise NoAnswer("calls of AWS need the models of botocore", 'pip install "forbear[boto3]"') from None
    return loaders.create_loader()


@cache
def _service_model(service: str) -> Any:
    models: Any = import_module("botocore.model")
    return models.ServiceModel(_loader().load_service_model(service, "service-2"), service)


def _similar(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, 3, 0.5)
    return f"is it {' or '.join(close)}?" if close else f"such as {', '.join(names[:5])}"


def _find_policy(profile: ProfileChoice) -> Policy:
    """Return AWS's own policy, with the limits and waits of a plain profile; NoAnswer for that of another service."""
    if profile.retry_not_found:
        raise NoAnswer("`retry_not_found` does not go with a call of AWS", "leave it out")
    if profile.name in (RECOMMENDED, NAME, f"{NAME}.{RECOMMENDED}"):
        return aws.policy
    plain = find_policy(profile.name) if profile.is_plain else None
    if plain is None:
        raise NoAnswer(f"`profile` {profile.name} does not go with a call of AWS", "name aws, default, or a preset")
    return aws.policy.with_limits(plain.limits).with_backoff(plain.backoff)


def _outcomes(call: AwsCall, judgement: Judgement, policy: Policy, unsafe: str) -> Iterator[FailureOutcome]:
    """Yield what follows an unsent call, a lost response, the codes that refuse this operation, and statuses."""
    yield outcome_of(NOT_SENT, NOT_EXECUTED, policy, judgement, unsafe)
    service, _, operation = call.operation.partition(".")
    for code in find_refusals(service, operation):
        verdict = verdict_of_response({"Error": {"Code": code}}, 400, {}).replace(kind=Kind.NOT_EXECUTED)
        yield outcome_of(f"{code} (refused)", verdict, policy, judgement, unsafe)
    yield outcome_of(LOST, TRANSIENT, policy, judgement, unsafe)
    yield outcome_of(_CUT, TRANSIENT, policy, judgement, unsafe)
    for status in _STATUSES:
        verdict = verdict_of_response({}, status, {})
        yield outcome_of(str(status), verdict, policy, judgement, unsafe, status=status)
