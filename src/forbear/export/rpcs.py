"""The RPCs of a service that are safe to repeat, for targets that retry by method and see no conditions."""

from itertools import chain

from forbear.core.verdict import Safety
from forbear.export.outline import Outline
from forbear.grpc.call import GrpcCall
from forbear.services import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.grpc.call import RpcService

_UNARY = "unary"

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


def _known(service: str) -> list[Method]:
    """Return the RPCs in the tables of the service with this name, each with True if it is unary (has no stream)."""
    entries = chain.from_iterable(registry.service(service).tables().values())
    named = [(entry.rpc or (entry.id if "stream" in entry.columns else ""), entry) for entry in entries]
    return [(name, entry.columns.get("stream", _UNARY) == _UNARY) for name, entry in dict(named).items() if name]
