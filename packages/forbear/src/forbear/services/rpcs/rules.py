"""Judge an RPC that no table of a service has.

The rules, in this order:

1. Outside of Google's packages only annotations count: `idempotency_level`, then `google.api.http`. A GET is a read;
   PUT and DELETE may be executed twice by RFC 9110. Of several bindings the most dangerous one counts. Names,
   signatures and `request_id` prove nothing there.
2. In Google's packages the table `GOOGLE` below decides; its first rule that fits does.
3. Without a definition, and in doubt, an RPC is never repeated.
"""

import csv
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc import codes, definitions
from forbear.grpc.call import GrpcCall, field
from forbear.grpc.definitions import Definition
from forbear.http.request import IDEMPOTENT, READS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService

NAME = "grpc"
"""The service's name in judgements on RPCs that no service knows."""

_DRY = ("validate_only", "dry_run")
_NOTIFIES = ("send_updates", "send_notifications", "send_notification_email", "send_email")
_BINDINGS_OF_READS = frozenset({"GET", "POST"})
_READING = re.compile(r"(?:BatchGet|Search|List|Lookup|Count)(?:[A-Z]\w*)?")
_STATEFUL = frozenset({
    "statement", "statements", "sql", "session", "sessions", "transaction", "transactions", "lease", "leases", "ack",
    "acknowledge",
})  # fmt: skip
"""Words in the names of fields: a request that has one may run a statement, or begin, keep or take something."""

_DONE = (codes.NOT_FOUND, codes.NUMBERS["ALREADY_EXISTS"])


class RpcJudgement(Judgement):
    """The safety of an RPC that no table has; `why` says which rule decided, and where it has its facts from."""

    __slots__ = ("why",)

    why: str

    def __init__(self, service: str, operation: str | None, safety: Safety, *, why: str = "", **judgement: Any) -> None:
        super().__init__(service, operation, safety, **judgement)
        self._set(why=why)


def judge(call: GrpcCall, service: "RpcService | None") -> Judgement:
    """Return the judgement on a call: that of the `service` which knows its package, else by the rules of this module.

    The rules also decide on RPCs that the table of the service lacks; without a definition its own judgement stays.
    """
    listed = None if service is None else service.classify_call(call)
    if listed is not None and (listed.operation is not None or listed.refused is not None):
        return listed
    name = call.name
    definition = definitions.find(name)
    if listed is not None and definition is None:
        return listed
    if not _is_google(name):
        return _judge_annotations(name, definition)
    return _judge_by_definition(name, definition) or _judge_google(call, definition)


def is_known(name: str, service: "RpcService | None") -> bool:
    """Return whether there is more to say of an RPC than that it is not known: a row, a definition, or Google's rules.

    In the package of a `service` only rows and definitions count, so that an RPC that does not exist is noticed.
    """
    if definitions.find(name) is not None:
        return True
    if service is None:
        return _is_google(name)
    return service.classify_call(GrpcCall(name)).operation is not None


def _is_google(name: str) -> bool:
    return name.startswith("google.")


@lru_cache(maxsize=1024)
def _judge_annotations(name: str, definition: Definition | None) -> Judgement:
    """Return the judgement by the annotations in the definition of an RPC."""
    if definition is None:
        return _forbid(name, "no module with its definition is loaded")
    source, bindings = definition.source, frozenset(definition.bindings)
    if definition.level == definitions.NO_SIDE_EFFECTS:
        return _allow_read(name, f"idempotency_level = NO_SIDE_EFFECTS in {source}")
    if definition.level == definitions.IDEMPOTENT:
        return _allow_write(name, f"idempotency_level = IDEMPOTENT in {source}", _DONE)
    why = f"google.api.http {' and '.join(definition.bindings)} in {source}"
    if bindings and bindings <= READS:
        return _allow_read(name, why)
    if bindings and bindings <= READS | IDEMPOTENT:
        done = (codes.NOT_FOUND,) if "DELETE" in bindings else ()
        return _allow_write(name, f"{why}; RFC 9110 9.2.2", done)
    return _forbid(name, f"no annotation in {source} says that it may be")


class _GoogleCall(NamedTuple):
    """A call in one of Google's packages, as the rules see it."""

    name: str
    message: object
    definition: Definition | None


_Rule = Callable[[_GoogleCall], Judgement | None]


def _find_row(rpc: _GoogleCall) -> Judgement | None:
    return _rows().get(rpc.name)


def _check_dry_run(rpc: _GoogleCall) -> Judgement | None:
    name = next((name for name in _DRY if _is_true(_value(rpc, name))), None)
    return None if name is None else _allow_read(rpc.name, f"{name} is true, so it changes nothing (AIP-163)")


def _check_notice(rpc: _GoogleCall) -> Judgement | None:
    name = next((name for name in _NOTIFIES if _value(rpc, name) not in (None, False, "none", "NONE")), None)
    return None if name is None else _forbid(rpc.name, f"with {name} it would send its notifications twice")


def _check_binding(rpc: _GoogleCall) -> Judgement | None:
    definition = rpc.definition
    if definition is None or not definition.bindings or not READS.issuperset(definition.bindings):
        return None
    return _allow_read(rpc.name, f"its HTTP binding is GET, in {definition.source} (AIP-127)")


def _check_verb(rpc: _GoogleCall) -> Judgement | None:
    definition = rpc.definition
    if definition is None or not _is_read_by_post(rpc.name.partition("/")[2], definition):
        return None
    why = "a verb of reading, and its request holds no statement, session or transaction"
    return _allow_read(rpc.name, f"{why}, in {definition.source}")


@lru_cache(maxsize=1024)
def _is_read_by_post(verb: str, definition: Definition) -> bool:
    if definition.fields is None or not _BINDINGS_OF_READS.issuperset(definition.bindings):
        return False
    words = (word for field in definition.fields for word in field.split("_"))
    return _READING.fullmatch(verb) is not None and _STATEFUL.isdisjoint(words)


def _refuse(rpc: _GoogleCall) -> Judgement:
    if rpc.definition is None:
        return _forbid(rpc.name, "no client with its definition is loaded")
    return _forbid(rpc.name, "no rule for Google's APIs says that it may be")


GOOGLE: Mapping[str, _Rule] = {
    "a row of rows.csv": _find_row,
    "validate_only or dry_run that is true": _check_dry_run,
    "a parameter that notifies": _check_notice,
    "an HTTP binding GET": _check_binding,
    "a verb of reading by POST": _check_verb,
    "else never": _refuse,
}
"""The rules for Google's packages. The first one that returns a judgement decides."""


@lru_cache(maxsize=1024)
def _judge_by_definition(name: str, definition: Definition | None) -> Judgement | None:
    """Return the judgement on any call of an RPC of Google, None if a field of its request may change it."""
    fields = None if definition is None else definition.fields
    if fields is None or not fields.isdisjoint((*_DRY, *_NOTIFIES)):
        return None
    return _judge_google(GrpcCall(name), definition)


def _judge_google(call: GrpcCall, definition: Definition | None) -> Judgement:
    rpc = _GoogleCall(call.name, call.message, definition)
    return next(judgement for rule in GOOGLE.values() if (judgement := rule(rpc)) is not None)


def _value(rpc: _GoogleCall, name: str) -> object:
    """Return the value of a field of the request, None if it is not set or cannot be read."""
    fields = None if rpc.definition is None else rpc.definition.fields
    if fields is not None and name not in fields:
        return None
    try:
        return field(rpc.message, name)
    except Exception:  # attributes of an unknown object may raise anything
        return None


def _is_true(value: object) -> bool:
    return value is True or value == "true"  # as a text only in an explained call


@cache
def _rows() -> Mapping[str, Judgement]:
    makers = {"read": _allow_read, "never": _forbid}
    with Path(__file__).with_name("rows.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["rpc"]: makers[row["safety"]](row["rpc"], f"{row['why']}; {row['source']}")
            for row in csv.DictReader(file)
        }


@lru_cache(maxsize=1024)
def _allow_read(name: str, why: str) -> Judgement:
    return RpcJudgement(NAME, name, Safety.ALWAYS, repeatable=True, mutation=False, why=why)


def _allow_write(name: str, why: str, maybe_done: tuple[int, ...]) -> Judgement:
    return RpcJudgement(NAME, name, Safety.ALWAYS, repeatable=True, maybe_done=maybe_done, why=why)


@lru_cache(maxsize=1024)
def _forbid(name: str, why: str) -> Judgement:
    return RpcJudgement(NAME, name, Safety.NEVER, unknown=why, why=why)
