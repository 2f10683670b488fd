"""The RPCs of a service that are safe to repeat, for targets that retry by method and see no conditions.

Targets for generated clients start with `outline_clients`, and share the functions below it.
"""

import csv
import re
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

from forbear.core.verdict import Safety
from forbear.export.outline import Outline, outline_requests
from forbear.export.waits import Waits
from forbear.grpc import codes
from forbear.grpc.call import GrpcCall, is_rpc_service
from forbear.policy import Policy
from forbear.services import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService

LONGEST_CALL = 86_400.0
"""Seconds for a whole call where the policy has no limit, and the target requires one."""

_UNARY = "unary"
_SERVICES = ("iam", "memorystore", "resource_manager")

Method = tuple[str, bool]  # the name of an RPC, and whether it is unary


def safe_methods(outline: Outline, service: "RpcService", only: frozenset[str] | None) -> list[Method]:
    """Return the RPCs of a service that are always safe to execute twice, each with True if it is unary.

    `only` limits them to these RPCs and services; ValueError for an unknown one. Those with a condition become losses.
    """
    safe: list[Method] = []
    conditional: list[str] = []
    known = _list_rpcs(service.name)
    if only is not None:
        unknown = only - {part for name, _ in known for part in (name, name.partition("/")[0])}
        if unknown:
            raise ValueError(f"`methods` must be RPCs or services that {service.name} has, got {min(unknown)!r}")
    for name, unary in known:
        if only is not None and name not in only and name.partition("/")[0] not in only:
            continue
        judgement = service.classify_call(GrpcCall(name))
        if judgement.repeatable:
            safe.append((name, unary))
        elif judgement.safety is Safety.CONDITIONAL:
            conditional.append(name.rpartition("/")[2])
    if not conditional:
        outline.says("safety")
    outline.differs(
        "safety",
        f"a config sees no conditions, so these are never retried: {', '.join(sorted(set(conditional)))}",
    )
    return safe


class Client(NamedTuple):
    """The client of one interface in a language: its `home` there, and the `methods` to retry."""

    interface: str
    home: str
    methods: list[str]

    @property
    def name(self) -> str:
        """The last word of the interface."""
        return self.interface.rpartition(".")[2]


def outline_clients(policy: Policy, language: str) -> tuple[Outline, list[Client]]:
    """Return the outline of a policy, and the clients with methods to retry, where a language has them.

    `language` is a column of clients.csv. Raises ValueError unless the policy is for IAM, Memorystore or Resource
    Manager.
    """
    outline = outline_requests(policy)
    judge: object = policy.service
    if outline.service not in _SERVICES or not is_rpc_service(judge):
        service = "none in particular" if outline.service is None else outline.service
        raise ValueError(
            f"`policy` must be for IAM, Memorystore or Resource Manager, got one for {service}; take one of their "
            "profiles (--profile iam), or for Cloud Storage the targets named after the language, such as nodejs"
        )
    outline.says("errors")
    safe = sorted(name for name, unary in safe_methods(outline, judge, None) if unary)
    grouped = groupby(safe, key=lambda name: name.partition("/")[0])
    methods = {interface: [name.partition("/")[2] for name in names] for interface, names in grouped}
    homes = {row["interface"]: row[language] for row in _clients() if row[language]}
    others = sorted(methods.keys() - homes.keys())
    if others:
        outline.warns("other clients", f"{', '.join(others)} keep the library's own settings")
    outline.warns("versions", "the methods are those of today; remove any that your version of the library lacks")
    return outline, [Client(each, homes[each], methods[each]) for each in methods if each in homes]


@cache
def _clients() -> list[dict[str, str]]:
    with Path(__file__).with_name("clients.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def code_names(outline: Outline) -> list[str]:
    """Return the names of the codes of gRPC that are worth a retry: UNAVAILABLE."""
    return [codes.NAMES[code] for code in sorted(codes.codes_for(outline.statuses))]


def milliseconds(seconds: float) -> int:
    """Return seconds as a whole number of milliseconds, at least 1."""
    return max(round(seconds * 1000), 1)


def longest_call(outline: Outline) -> float:
    """Return the limit in seconds for a whole call where a target counts no attempts: the timeout, or all the waits."""
    if outline.timeout is not None:
        return outline.timeout
    return LONGEST_CALL if outline.longest is None else outline.longest


def _list_rpcs(service: str) -> list[Method]:
    """Return the RPCs in the tables of the service with this name, each with True if it is unary (has no stream)."""
    entries = chain.from_iterable(registry.service(service).tables().values())
    named = [(entry.rpc or (entry.id if "stream" in entry.columns else ""), entry) for entry in entries]
    return [(name, entry.columns.get("stream", _UNARY) == _UNARY) for name, entry in dict(named).items() if name]


def client_config(
    outline: Outline, clients: list[Client], waits: Waits, *, has_attempts: bool = False
) -> tuple[dict[str, object], float]:
    """Return a client config of gax (Node.js, PHP), which may limit attempts, and the seconds of a whole call."""
    outline.says("timeout", "attempt_timeout")
    timeout = longest_call(outline)
    limit = milliseconds(timeout if outline.attempt_timeout is None else outline.attempt_timeout)
    parameters: dict[str, float] = {
        "initial_retry_delay_millis": milliseconds(waits.initial),
        "retry_delay_multiplier": waits.multiplier,
        "max_retry_delay_millis": milliseconds(waits.maximum),
        "initial_rpc_timeout_millis": limit,
        "rpc_timeout_multiplier": 1,
        "max_rpc_timeout_millis": limit,
        "total_timeout_millis": milliseconds(timeout),
    }
    names = code_names(outline)
    if has_attempts:
        outline.says("attempts")
        parameters["max_retries"] = 0 if outline.attempts is None else outline.attempts - 1  # 0 is no limit
        names = [] if outline.attempts == 1 else names
    named = {"timeout_millis": limit, "retry_codes_name": "forbear", "retry_params_name": "forbear"}
    interfaces = {
        client.interface: {
            "retry_codes": {"forbear": names},
            "retry_params": {"forbear": parameters},
            "methods": dict.fromkeys(client.methods, named),
        }
        for client in clients
    }
    return {"interfaces": interfaces}, timeout


def as_variable(name: str) -> str:
    """Return a class's name as a variable: redisSettings, iamSettings."""
    return f"iam{name[3:]}" if name.startswith("IAM") else name[0].lower() + name[1:]


def as_snake(name: str) -> str:
    """Return a name in lower case with underscores: get_iam_policy."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def as_camel(code: str) -> str:
    """Return the name of a code as Go and C# write it: DeadlineExceeded."""
    return "".join(part.capitalize() for part in code.split("_"))
