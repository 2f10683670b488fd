"""The RPCs of a service that are safe to repeat, for targets that retry by method and see no conditions.

Targets for generated clients start with `outlined`, and share the functions below it.
"""

from collections.abc import Container
from itertools import chain, groupby

from forbear.core.verdict import Safety
from forbear.export.outline import Outline
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

Methods = dict[str, list[str]]  # the methods of each interface
Method = tuple[str, bool]  # the name of an RPC, and whether it is unary


def safe_methods(outline: Outline, service: "RpcService", only: frozenset[str] | None) -> list[Method]:
    """Return the RPCs of a service that are always safe to execute twice, each with True if it is unary.

    `only` limits them to these RPCs and gRPC services. Records as losses those that are safe only under a condition.
    Raises ValueError for a name in `only` that the service does not have.
    """
    safe: list[Method] = []
    conditional: list[str] = []
    known = _known(service.name)
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
        f"safety: a config sees no conditions, so these are never retried: {', '.join(sorted(set(conditional)))}",
    )
    return safe


def outlined(policy: Policy, clients: Container[str]) -> tuple[Outline, Methods]:
    """Return the outline of a policy, and the methods to retry by interface, with the losses that all languages share.

    `clients` are the interfaces that the language has clients for. Raises ValueError unless the policy is one of IAM,
    Memorystore or Resource Manager.
    """
    outline = Outline.for_requests(policy)
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
    methods = {interface: [name.partition("/")[2] for name in listed] for interface, listed in grouped}
    others = sorted(each for each in methods if each not in clients)
    if others:
        outline.warns("other clients", f"{', '.join(others)} keep the library's own settings")
    outline.warns("versions", "the methods are those of today; remove any that your version of the library lacks")
    return outline, {interface: listed for interface, listed in methods.items() if interface in clients}


def code_names(outline: Outline) -> list[str]:
    """Return the names of the codes of gRPC that are worth a retry: UNAVAILABLE."""
    return [codes.NAMES[code] for code in sorted(codes.among(outline.statuses))]


def milliseconds(seconds: float) -> int:
    """Return seconds as a whole number of milliseconds, at least 1."""
    return max(round(seconds * 1000), 1)


def longest_call(outline: Outline) -> float:
    """Return the limit in seconds for a whole call where a target counts no attempts: the timeout, or all the waits."""
    if outline.timeout is not None:
        return outline.timeout
    return LONGEST_CALL if outline.longest is None else outline.longest


def camel(code: str) -> str:
    """Return the name of a code as Go and C# write it: DeadlineExceeded."""
    return "".join(part.capitalize() for part in code.split("_"))


def _known(service: str) -> list[Method]:
    """Return the RPCs in the tables of the service with this name, each with True if it is unary (has no stream)."""
    entries = chain.from_iterable(registry.service(service).tables().values())
    named = [(entry.rpc or (entry.id if "stream" in entry.columns else ""), entry) for entry in entries]
    return [(name, entry.columns.get("stream", _UNARY) == _UNARY) for name, entry in dict(named).items() if name]
