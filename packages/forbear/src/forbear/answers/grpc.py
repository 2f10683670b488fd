"""gRPC calls: parse a method and fields of its request, and say what follows each status. gRPC is not needed."""

import json
import re
from collections.abc import Callable, Sequence
from typing import cast

from forbear.answers import unreadable
from forbear.answers.answer import Answer, FailureOutcome, outcome_of
from forbear.cli.kit.output import BadInput
from forbear.cli.kit.profiles import DEFAULT_PROFILE, ProfileChoice, named_policy
from forbear.core.service import Judgement
from forbear.core.verdict import NOT_EXECUTED, Kind, Safety, Verdict
from forbear.exchange.call import cure_for
from forbear.grpc import codes, status
from forbear.grpc.call import GrpcCall, Metadata, is_rpc_service
from forbear.policy import Policy
from forbear.services import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService

_METHOD = re.compile(r"/?((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)/([A-Za-z_]\w*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_PUSHBACK: Metadata = (("grpc-retry-pushback-ms", "30000"),)
_EXAMPLE = "forbear explain grpc google.storage.v2.Storage/DeleteObject if_generation_match=0"

UNKNOWN_SERVICE = "grpc"
"""The service name in the answer if no service knows the package of a call."""

_UNKNOWN = Judgement(UNKNOWN_SERVICE, None, Safety.NEVER)


def parse_call(words: Sequence[str], json_fields: str | None) -> GrpcCall:
    """Parse the words after "grpc": a method, then fields as NAME=VALUE; return the call, or raise BadInput.

    `json_fields` is a JSON object with further fields, or None. NAME may have dots for fields of inner messages.
    """
    if not words:
        raise BadInput("a call is a method and fields, got no method", f"such as: {_EXAMPLE}")
    method, *fields = words
    if not _METHOD.fullmatch(method):
        raise BadInput("the method of a call is package.Service/Method", f"such as: {_EXAMPLE}")
    message = _from_json(json_fields) if json_fields is not None else {}
    for number, text in enumerate(fields, start=1):
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise BadInput(
                f"field {number} is not a field (its text is hidden because it may be secret)",
                "write it as name=value or outer.name=value, or use --json-fields",
            )
        _put(message, _plain(name).split("."), value)
    return GrpcCall(method, message)


def answer(call: GrpcCall, service: str | None, profile: ProfileChoice) -> Answer:
    """Return which failures of a call are retried, and why.

    `service` names the service that judges it, None for the one that its package belongs to. For an unknown package the
    policy is the default one, and no call is repeatable.
    """
    policy, judge = _policy_for(call, service, profile)
    judgement = _UNKNOWN if judge is None else judge.classify_call(call)

    option = f'safe="/{call.name}"'
    cure = cure_for(judgement, option)

    def verdict(code: int, metadata: Metadata = ()) -> Verdict | None:
        return status.verdict(code, metadata) if judge is None else judge.call_verdict(judgement, code, metadata)

    return Answer(
        f"gRPC {call.name}",
        {"method": call.name, "fields": sorted(cast("dict[str, object]", call.message))},
        profile.name,
        policy,
        judgement,
        _outcomes(judgement, policy, verdict),
        tuple(codes.NAMES[number] for number in judgement.maybe_done),
        (f"if a repeat does no harm, vouch for the RPC in the interceptor with {option}",) if cure else (),
        warnings=unreadable.of_call(call, judgement),
    )


def _policy_for(call: GrpcCall, service: str | None, profile: ProfileChoice) -> "tuple[Policy, RpcService | None]":
    if service is None:
        known = registry.find_rpc(call.method)
        service = profile.service if known is None else known.name
        if service is None:
            return named_policy(profile.name if profile.is_plain else DEFAULT_PROFILE), None
        profile.check_service(service, f"an RPC of {service}")
    else:
        profile.check_service(service, f"`--service {service}`")
    policy = profile.policy(service)
    judge: object = policy.service
    if not is_rpc_service(judge):
        raise BadInput(f"{service} does not judge gRPC calls", "name a --service or a --profile of a gRPC API")
    return policy, judge


def _outcomes(judgement: Judgement, policy: Policy, verdict_of: Callable[..., Verdict | None]) -> list[FailureOutcome]:
    """Return what follows if the first attempt was not sent, then what follows each status that is a failure.

    Transient statuses come first, then conflicts, then permanent ones. `verdict_of` returns the verdict on a code.
    """
    failures = [(name, verdict_of(number)) for name, number in codes.NUMBERS.items() if number != codes.OK]
    failures.append(("UNAVAILABLE with a pushback of 30 s", verdict_of(codes.UNAVAILABLE, _PUSHBACK)))
    outcomes = [outcome_of("certainly not sent (refused stream)", NOT_EXECUTED, policy, judgement)]
    for kind in (Kind.TRANSIENT, Kind.CONFLICT, Kind.PERMANENT):
        outcomes += [
            outcome_of(name, verdict, policy, judgement)
            for name, verdict in failures
            if verdict is not None and verdict.kind is kind
        ]
    return outcomes


def _from_json(text: str) -> dict[str, object]:
    try:
        message: object = json.loads(text, object_pairs_hook=_message)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _Duplicate) else "it cannot be read"
        raise BadInput(f"`--json-fields` must be a JSON object: {reason}", "put it in single quotes") from None
    if not isinstance(message, dict):
        raise BadInput("`--json-fields` must be a JSON object, got another value", 'such as \'{"bucket": "b"}\'')
    return cast("dict[str, object]", message)


class _Duplicate(ValueError):
    """Raised if a JSON object sets a field twice: parsers differ in which value they use."""


def _message(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Make a message of the pairs of a JSON object, with the names of protobuf (`if_generation_match`) as keys.

    The pairs may have those names or the names in JSON (`ifGenerationMatch`). Raises _Duplicate if two pairs set one
    field.
    """
    message = {_plain(name): value for name, value in pairs}
    if len(message) < len(pairs):
        raise _Duplicate("a field is set twice")
    return message


def _plain(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _put(message: dict[str, object], path: list[str], value: str) -> None:
    """Set the field at `path`, through inner messages, to a text; raise BadInput if it is set already."""
    *outer, name = path
    for part in outer:
        inner = message.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _duplicate_field(path)
        message = cast("dict[str, object]", inner)
    if name in message:
        raise _duplicate_field(path)
    message[name] = value


def _duplicate_field(path: list[str]) -> BadInput:
    return BadInput(f"the field {'.'.join(path)} is set twice", "leave one of them out")
