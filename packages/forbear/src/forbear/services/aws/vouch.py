"""Vouching for calls of AWS: the user's word, by the option `safe` of the clients, that they may be executed twice."""

import re
import sys
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from forbear.core.check import list_values, suggest
from forbear.core.record import Record
from forbear.core.service import OperationSet
from forbear.evidence.sent import AwsCall
from forbear.http.vouch import check_flag
from forbear.run.vouching import is_vouched
from forbear.services.aws.service import AwsJudgement

SafeCalls = str | Iterable[str] | Callable[[AwsCall], bool]

_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]*\.[A-Za-z0-9*]+", re.ASCII)
_EXAMPLE = '"sqs.SendMessage"'
_OTHERS = ("kafka.Produce",)
"""Names of calls that are none of AWS, although a service of AWS has the first word."""


class AwsVouch(Record):
    """The calls that may be executed twice by the user's word: names, or a function that takes the `AwsCall`.

    A name is that of a service in botocore and of an operation, "sqs.SendMessage". `*` stands for any characters of the
    operation. TypeError or ValueError for wrong ones.
    """

    __slots__ = ("safe",)

    safe: "tuple[str, ...] | Callable[[AwsCall], bool]"

    def __init__(self, safe: SafeCalls = ()) -> None:
        rule = f"`safe` must be the name of an operation such as {_EXAMPLE}, several of them, or a function of the call"
        self._set(safe=safe if callable(safe) else tuple(map(_check, list_values(safe, rule))))

    def check_names(self, service: str, operations: Iterable[str]) -> None:
        """Raise ValueError for a name that is none of this service's `operations`: it would never count."""
        listed = [f"{service}.{operation}" for operation in operations]
        for pattern in () if callable(self.safe) else self.safe:
            if not isinstance(pattern, OperationSet) and not any(fnmatchcase(name, pattern) for name in listed):
                near = suggest(pattern, listed)
                raise ValueError(f"`safe` must hold names of operations of {service}, got {pattern!r}{near}")


def check_loaded(name: str) -> None:
    """Raise ValueError for the name of an operation that botocore's models, if it is loaded, do not have."""
    loaders: Any = sys.modules.get("botocore.loaders")
    service = name.partition(".")[0]
    listed = () if loaders is None or name in _OTHERS else _operations(loaders, service)
    if listed:
        AwsVouch(name).check_names(service, listed)


@cache
def _operations(loaders: Any, service: str) -> tuple[str, ...]:
    """Return the operations of a service, () for one that botocore does not know."""
    loader = loaders.create_loader()
    known = service in loader.list_available_services("service-2")
    return tuple(loader.load_service_model(service, "service-2")["operations"]) if known else ()


def apply_vouch(judgement: AwsJudgement, call: AwsCall, vouch: AwsVouch) -> AwsJudgement:
    """Return the judgement, repeatable and `vouched` if the user vouches for the call, by `safe` or an open scope."""
    safe = vouch.safe
    if judgement.repeatable:
        return judgement
    covered = check_flag(safe(call)) if callable(safe) else any(_covers(name, call) for name in safe)
    return judgement.replace(repeatable=True, vouched=True) if covered or is_vouched(call) else judgement


def _covers(name: str, call: AwsCall) -> bool:
    return name(call) if isinstance(name, OperationSet) else fnmatchcase(call.operation, name)


def _check(name: object) -> str:
    if isinstance(name, OperationSet):
        return name
    if not isinstance(name, str):
        raise TypeError(f"`safe` must hold names of operations such as {_EXAMPLE}, got {name!r}")
    if _PATTERN.fullmatch(name) is None:
        raise ValueError(f"`safe` must hold names of a service and an operation, such as {_EXAMPLE}; got {name!r}")
    return name
