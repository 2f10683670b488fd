"""Vouching for RPCs: the user's word that one may be executed twice, or that a status means it was not executed.

The tables judge strictly. `apply_vouch` raises their judgement where the user said so for the RPC, by patterns such as
"/package.Service/Get*" or by a predicate.
"""

from collections.abc import Iterable

from forbear.core.check import list_values
from forbear.core.record import Record
from forbear.core.service import OperationSet
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall
from forbear.grpc.definitions import check_method

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from forbear.core.service import Judgement

    SafeRpcs = str | Iterable[str] | Callable[[GrpcCall], bool]

_EXAMPLE = '"/package.Service/Method"'
_VISIBLE = frozenset(map(chr, range(ord("!"), ord("~") + 1)))
_AMBIGUOUS = frozenset(
    codes.NUMBERS[name] for name in ("OK", "CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE")
)
"""The numbers of codes with which gRPC itself ends a call whose connection broke, so they prove nothing."""

_TOO_LARGE = "larger than max"
"""A part of the text with which gRPC itself ends a call by RESOURCE_EXHAUSTED: its response was too large to read."""


class RpcVouch(Record):
    """The user's word for one channel, from the options `safe` and `not_executed` of an interceptor.

    - `safe`: the RPCs that may be executed twice. A pattern, several, or a function that takes the `GrpcCall`.
    - `not_executed`: the status codes by which the server refuses calls before it executes them, as members of
      `grpc.StatusCode`. `refusals` has their numbers.
    - `settle`: what settles a conflict of one's own making, None without a word on that.

    TypeError or ValueError for wrong ones.
    """

    __slots__ = ("safe", "not_executed", "refusals", "settle")

    safe: "tuple[RpcPattern | OperationSet, ...] | Callable[[GrpcCall], bool]"
    not_executed: frozenset[object]
    refusals: frozenset[int]
    settle: "Any"

    def __init__(self, safe: "SafeRpcs" = (), not_executed: Iterable[object] = (), settle: "Any" = None) -> None:
        self._set(safe=safe if callable(safe) else rpc_patterns(safe), settle=settle)
        rule = "`not_executed` must list members of grpc.StatusCode, such as [grpc.StatusCode.RESOURCE_EXHAUSTED]"
        if isinstance(not_executed, str) or not isinstance(not_executed, Iterable):
            raise TypeError(f"{rule}; got {not_executed!r}")
        listed = frozenset(not_executed)
        self._set(not_executed=listed, refusals=frozenset(_number(code, rule) for code in listed))

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("safe", "not_executed", "settle")

    def show(self) -> list[str]:
        """Return the keywords of an interceptor that make this vouch, without those that have their defaults."""
        shown: list[str] = []
        if self.safe:
            shown.append(f"safe={self.safe if callable(self.safe) else [pattern.text for pattern in self.safe]!r}")
        if self.not_executed:
            shown.append(f"not_executed=[{', '.join(sorted(map(str, self.not_executed)))}]")
        if self.settle is not None:
            shown.append(f"settle={self.settle.settle!r}")
        return shown

    def is_refusal(self, judgement: "Judgement", code: int, text: str) -> bool:
        """Return whether a status means that the server did not execute the call; `text` is the error's.

        Never where the judgement is refused or that of a session. RESOURCE_EXHAUSTED does not count if gRPC itself
        raised it for a response that was too large: the call was executed.
        """
        if code not in self.refusals or judgement.refused is not None or judgement.session:
            return False
        return code != codes.RESOURCE_EXHAUSTED or _TOO_LARGE not in text


class RpcPattern(Record):
    """The full name of an RPC, with or without the leading slash: "/package.Service/Method".

    The name of the method may have one `*`, which stands for any characters: "/package.Service/*". The service is
    written out. Names are compared as they go over the wire.
    """

    __slots__ = ("text", "service", "before", "after")

    text: str
    service: str
    before: str
    after: str | None

    def __init__(self, text: str, parameter: str = "safe") -> None:
        if not isinstance(text, str):
            raise TypeError(f"`{parameter}` must hold full names of RPCs such as {_EXAMPLE}, got {text!r}")
        service, slash, method = text.removeprefix("/").partition("/")
        if not slash or not service or not method or "/" in method or not _VISIBLE.issuperset(text):
            raise ValueError(f"`{parameter}` must hold full names of RPCs such as {_EXAMPLE}, got {text!r}")
        if "*" in service:
            raise ValueError(f"`{parameter}` must hold names whose service is written out, without `*`; got {text!r}")
        before, star, after = method.partition("*")
        if "*" in after:
            raise ValueError(f"`{parameter}` must hold names whose method has at most one `*`; got {text!r}")
        self._set(text=text, service=service, before=before, after=after if star else None)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("text",)  # the others follow from it

    def covers(self, name: str) -> bool:
        """Return whether this pattern covers the RPC with the full name `name`, without the leading slash."""
        service, _, method = name.partition("/")
        if service != self.service or not method or "/" in method:
            return False
        before, after = self.before, self.after
        if after is None:
            return method == before
        return len(method) >= len(before) + len(after) and method.startswith(before) and method.endswith(after)


def rpc_patterns(
    safe: "str | Iterable[str | RpcPattern]", parameter: str = "safe"
) -> "tuple[RpcPattern | OperationSet, ...]":
    """Return the patterns in `safe`, one or several; TypeError or ValueError for wrong ones."""
    rule = f"`{parameter}` must be the full name of an RPC such as {_EXAMPLE}, several, or a function of the call"
    listed = list_values(safe, rule)
    return tuple(each if isinstance(each, RpcPattern | OperationSet) else _pattern(each, parameter) for each in listed)


def _pattern(text: str, parameter: str) -> RpcPattern:
    """Return the pattern of a text; ValueError also for a method that its service, if it is loaded, does not have."""
    pattern = RpcPattern(text, parameter)
    if pattern.after is None:
        check_method(f"{pattern.service}/{pattern.before}", parameter)
    return pattern


def apply_vouch(judgement: "Judgement", call: GrpcCall, vouch: RpcVouch) -> "Judgement":
    """Return the judgement, repeatable and `vouched` if the user vouches for the call and nothing refuses it.

    TypeError if a function of the user returns no bool.
    """
    safe = vouch.safe
    if safe == () or judgement.repeatable or judgement.refused is not None or judgement.session:
        return judgement
    covered: object = safe(call) if callable(safe) else covers(safe, call)
    if not isinstance(covered, bool):
        raise TypeError(f"`safe` must return True or False, got {covered!r}")
    return judgement.replace(repeatable=True, vouched=True) if covered else judgement


def covers(listed: "Iterable[RpcPattern | OperationSet]", call: GrpcCall) -> bool:
    """Return whether any of the patterns covers a call."""
    return any(each(call) if isinstance(each, OperationSet) else each.covers(call.name) for each in listed)


def _number(code: object, rule: str) -> int:
    name: object = getattr(code, "name", None)
    if not isinstance(name, str) or name not in codes.NUMBERS:
        raise TypeError(f"{rule}; got {code!r}")
    number = codes.NUMBERS[name]
    if number in _AMBIGUOUS:
        raise ValueError(
            f"`not_executed` must not list {name}: a call whose connection breaks may end with it after it was "
            "executed; list RPCs that may be executed twice in `safe`"
        )
    return number


NO_RPC_VOUCH = RpcVouch()

ANY_RPC = RpcVouch(lambda _: True)
"""The word of a user who vouches for the RPC at hand, by a scope."""
