"""gRPC calls: reading a method with fields of its request, and what follows each end of the call. No gRPC is needed."""

import json
import re
from collections.abc import Callable, Sequence
from typing import cast

from forbear.cli import profiles
from forbear.cli.explain.answer import Answer
from forbear.cli.explain.outcome import Outcome, decided
from forbear.cli.output import BadInput
from forbear.core.service import Judgement
from forbear.core.verdict import NOT_EXECUTED, Kind, Safety, Verdict
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
"""What stands for a service where none knows the package of a call."""

_UNKNOWN = Judgement(UNKNOWN_SERVICE, None, Safety.NEVER)


def call_of(words: Sequence[str], json_fields: str | None) -> GrpcCall:
    """The call that the words after "grpc" describe: a method, then fields as NAME=VALUE; `json_fields` has more."""
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
                f"field {number} is no field (its text is not shown, for it may be secret)",
                "write it as name=value or outer.name=value, or use --json-fields",
            )
        _put(message, _plain(name).split("."), value)
    return GrpcCall(method, message)


def answer(call: GrpcCall, service: str | None, profile: str) -> Answer:
    """What is to be said of a call; `service` is a name, None for the one that its package tells."""
    policy, judge = _chosen(call, service, profile)
    judgement = _UNKNOWN if judge is None else judge.classify_call(call)

    def verdict(code: int, metadata: Metadata = ()) -> Verdict | None:
        return status.verdict(code, metadata) if judge is None else judge.call_verdict(judgement, code, metadata)

    return Answer(
        f"gRPC {call.name}",
        {"method": call.name, "fields": sorted(cast("dict[str, object]", call.message))},
        profile,
        policy,
        judgement,
        _outcomes(judgement, policy, verdict),
        tuple(codes.NAMES[number] for number in judgement.maybe_done),
    )


def _chosen(call: GrpcCall, service: str | None, profile: str) -> "tuple[Policy, RpcService | None]":
    if service is None:
        found = registry.find_rpc(call.method)
        if found is None:
            return profiles.policy(profiles.DEFAULT), None
        service = found.name
    policy = profiles.policy(f"{service}.{profile}")
    judge: object = policy.service
    if not is_rpc_service(judge):
        raise BadInput(f"{service} does not judge gRPC calls", "leave --service out, or name the service of an API")
    return policy, judge


def _outcomes(judgement: Judgement, policy: Policy, verdict: Callable[..., Verdict | None]) -> list[Outcome]:
    """What follows each end of the first attempt, those that may pass first."""
    ends = [(name, verdict(number)) for name, number in codes.NUMBERS.items() if number != codes.OK]
    ends.append(("UNAVAILABLE with a pushback of 30 s", verdict(codes.UNAVAILABLE, _PUSHBACK)))
    found = [decided("certainly not sent (refused stream)", NOT_EXECUTED, policy, judgement)]
    for kind in (Kind.TRANSIENT, Kind.CONFLICT, Kind.PERMANENT):
        found += [
            decided(name, said, policy, judgement) for name, said in ends if said is not None and said.kind is kind
        ]
    return found


def _from_json(text: str) -> dict[str, object]:
    try:
        message: object = json.loads(text, object_pairs_hook=_message)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _Twice) else "it cannot be read"
        raise BadInput(f"`--json-fields` must be a JSON object: {reason}", "put it in single quotes") from None
    if not isinstance(message, dict):
        raise BadInput("`--json-fields` must be a JSON object, got another value", 'such as \'{"bucket": "b"}\'')
    return cast("dict[str, object]", message)


class _Twice(ValueError):
    """A field has two values, of which each reader may take another one."""


def _message(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object as a message; its names may be those of the definition or those of JSON (`ifGenerationMatch`)."""
    message = {_plain(name): value for name, value in pairs}
    if len(message) < len(pairs):
        raise _Twice("a field is given twice")
    return message


def _plain(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _put(message: dict[str, object], path: list[str], value: str) -> None:
    """Set a field to a text, which stands for a number, too."""
    *outer, name = path
    for part in outer:
        inner = message.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _given_twice(path)
        message = cast("dict[str, object]", inner)
    if name in message:
        raise _given_twice(path)
    message[name] = value


def _given_twice(path: list[str]) -> BadInput:
    return BadInput(f"the field {'.'.join(path)} is given twice", "leave one of them out")
