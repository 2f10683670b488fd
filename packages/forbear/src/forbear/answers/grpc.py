"""gRPC calls: parse a method and fields of its request, and say what follows each status. gRPC is not needed."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from forbear.answers import condition_warnings
from forbear.answers.answer import Answer, FailureOutcome, outcome_of, reason, unsafe_text
from forbear.answers.errors import NoAnswer
from forbear.answers.profile import ProfileChoice
from forbear.core.service import Judgement, cure_for, why_not
from forbear.core.verdict import NOT_EXECUTED, Kind, Verdict
from forbear.grpc import codes, status
from forbear.grpc.call import GrpcCall, Metadata, is_rpc_service
from forbear.policy import Policy
from forbear.services import registry
from forbear.services.at_least_once import option_for
from forbear.services.policies import DEFAULT_PROFILE
from forbear.services.rpcs import RpcJudgement, google, rules
from forbear.waits import add_wait, find_wait_of_rpc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService

_METHOD = re.compile(r"/?((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)/([A-Za-z_]\w*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_PUSHBACK: Metadata = (("grpc-retry-pushback-ms", "30000"),)
_EXAMPLE = "such as google.storage.v2.Storage/DeleteObject"


def is_method(word: str) -> bool:
    """Return whether a word is the name of an RPC: "/package.Service/Method", with or without the first slash."""
    return _METHOD.fullmatch(word) is not None


def parse_call(words: Sequence[str], fields: Mapping[str, object] | None = None) -> GrpcCall:
    """Return the call of a method, its first word, with fields as NAME=VALUE, which may have dots, and `fields`."""
    if list(words[:1]) == ["google"]:
        words = [find_google(words[1] if len(words) > 1 else ""), *words[2:]]
    if not words or not is_method(words[0]):
        raise NoAnswer("the method of a call is package.Service/Method", _EXAMPLE)
    message = dict(fields or {})
    for number, text in enumerate(words[1:], start=1):
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise NoAnswer(
                f"field {number} is not a field (its text is hidden because it may be secret)",
                "write it as name=value or outer.name=value, or use `fields`",
            )
        _put(message, _plain(name).split("."), value)
    return GrpcCall(words[0], message)


def find_google(text: str) -> str:
    """Return the full name of an RPC of Google by parts of it, "pubsub.Publish" or "pubsub.Publisher.Publish".

    Raises NoAnswer if it is not listed, or if several are called so.
    """
    *path, method = text.replace("/", ".").split(".")
    found = google.search(tuple(path), method) if path else ()
    if len(found) > 1:
        raise NoAnswer(f"{text} may be {', '.join(found[:5])}", "write more of its name")
    for name in found:
        return name
    raise NoAnswer(f"no known RPC of Google is {text!r}", "write its full name: /package.Service/Method")


def find_rule(host: str, method: str, target: str) -> str | None:
    """Return what the rules say of the RPC that a request to a JSON API of Google stands for, None if it is unknown."""
    judgement = rules.judge_json(host, method, target)
    if not isinstance(judgement, RpcJudgement) or "/" not in str(judgement.operation):
        return None
    conditions = "" if judgement.repeatable else "".join(f"only with {each}, " for each in judgement.conditions[:1])
    word = "; but a POST of HTTP needs your word" if judgement.repeatable and method == "POST" else ""
    return f"as {judgement.operation}: {conditions}{judgement.why}{word}"


def parse_fields(text: str) -> dict[str, object]:
    """Return the fields in a JSON object, by the names of protobuf (`if_generation_match`) at all depths.

    Raises NoAnswer for any other text, and if a field is set twice: parsers differ in which value they use.
    """
    try:
        message: object = json.loads(text, object_pairs_hook=_message)
    except NoAnswer:
        raise
    except (ValueError, RecursionError):
        raise NoAnswer("`fields` must be a JSON object: it cannot be read", "put it in single quotes") from None
    if not isinstance(message, dict):
        raise NoAnswer("`fields` must be a JSON object, got another value", 'such as \'{"bucket": "b"}\'')
    return cast("dict[str, object]", message)


def answer(call: GrpcCall, service: str | None, profile: ProfileChoice) -> Answer:
    """Return which failures of a call are retried, and why, by the service named or that of its package."""
    policy, judge = _policy_for(call, service, profile)
    judgement = rules.judge(call, judge)
    option = option_for(call, f'safe="/{call.name}"')
    cure = cure_for(judgement, option)

    def verdict(code: int, metadata: Metadata = ()) -> Verdict | None:
        found = (
            status.verdict(code, read=not judgement.mutation)
            if judge is None
            else judge.call_verdict(judgement, code, metadata)
        )
        return None if found is None else add_wait(found, find_wait_of_rpc(metadata))

    return Answer(
        f"gRPC {call.name}",
        {"method": call.name, "fields": sorted(cast("dict[str, object]", call.message))},
        profile.name,
        policy,
        judgement,
        reason(judgement),
        tuple(_outcomes(judgement, policy, verdict, unsafe_text(judgement, why_not(judgement, "the call")) + cure)),
        option if cure else None,
        tuple(codes.NAMES[number] for number in judgement.maybe_done),
        warnings=condition_warnings.find_in_call(call, judgement),
        rule=judgement.why if isinstance(judgement, RpcJudgement) else None,
    )


def _policy_for(call: GrpcCall, service: str | None, profile: ProfileChoice) -> "tuple[Policy, RpcService | None]":
    if service is None:
        known = registry.find_rpc(call.method)
        service = profile.service if known is None else known.name
        if service is None:
            return ProfileChoice(profile.name if profile.is_plain else DEFAULT_PROFILE).policy(), None
        profile.check_service(service, f"an RPC of {service}")
    else:
        profile.check_service(service, f"the service {service}")
    policy = profile.policy(service)
    judge: object = policy.service
    if not is_rpc_service(judge):
        raise NoAnswer(f"{service} does not judge gRPC calls", "name a `service` or a `profile` of a gRPC API")
    return policy, judge


def _outcomes(
    judgement: Judgement, policy: Policy, verdict_of: Callable[..., Verdict | None], unsafe: str
) -> Iterator[FailureOutcome]:
    """Yield what follows an attempt that was not sent, and each failure: transient ones, conflicts, permanent ones."""
    failures = [(name, verdict_of(number)) for name, number in codes.NUMBERS.items() if number != codes.OK]
    failures.append(("UNAVAILABLE with a pushback of 30 s", verdict_of(codes.UNAVAILABLE, _PUSHBACK)))
    yield outcome_of("certainly not sent (refused stream)", NOT_EXECUTED, policy, judgement, unsafe)
    for kind in (Kind.TRANSIENT, Kind.CONFLICT, Kind.PERMANENT):
        for name, verdict in failures:
            if verdict is not None and verdict.kind is kind:
                yield outcome_of(name, verdict, policy, judgement, unsafe)


def _message(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the pairs of a JSON object as a message; raise NoAnswer if two of them set one field."""
    message = {_plain(name): value for name, value in pairs}
    if len(message) < len(pairs):
        raise NoAnswer("`fields` must be a JSON object: a field is set twice", "leave one of them out")
    return message


def _plain(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _put(message: dict[str, object], path: list[str], value: str) -> None:
    """Set the field at `path`, through inner messages, to a text; raise NoAnswer if it is set already."""
    *outer, name = path
    for part in outer:
        inner = message.setdefault(part, {})
        if not isinstance(inner, dict):
            raise _duplicate_field(path)
        message = cast("dict[str, object]", inner)
    if name in message:
        raise _duplicate_field(path)
    message[name] = value


def _duplicate_field(path: list[str]) -> NoAnswer:
    return NoAnswer(f"the field {'.'.join(path)} is set twice", "leave one of them out")
