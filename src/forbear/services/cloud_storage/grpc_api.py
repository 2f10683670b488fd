"""The gRPC APIs of Cloud Storage: which RPC a call is of, and what the end of one means. It knows no channel."""

from functools import cache
from pathlib import Path

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc import codes, status
from forbear.grpc.call import GrpcCall, Metadata
from forbear.services.cloud_storage.rules import NAME, choose
from forbear.tables.operations import RpcOperation
from forbear.tables.table import Row, load

_UNKNOWN = Judgement(NAME, None, Safety.NEVER)
_REDIRECTS = frozenset({
    "google.storage.v2.BidiReadObjectRedirectedError", "google.storage.v2.BidiWriteObjectRedirectedError",
})  # fmt: skip


@cache
def operations() -> tuple[Row, ...]:
    """The table of the gRPC APIs; ids are full names of RPCs, the own column says which side sends a stream."""
    return load(Path(__file__).with_name("grpc.csv"), ("stream",))


class GrpcApi:
    """The judge of calls, by the rules that the settings choose."""

    __slots__ = ("_procedures",)

    def __init__(self, *, disputed: bool, documented: bool) -> None:
        self._procedures = {
            row.id: RpcOperation(NAME, row.id, row, choose(row, disputed=disputed, documented=documented))
            for row in operations()
        }

    def judge(self, call: GrpcCall) -> Judgement:
        """The judgement on a call; an unknown RPC is never repeated."""
        procedure = self._procedures.get(call.name)
        return _UNKNOWN if procedure is None else procedure.judge(call.message)


def is_redirect(code: int, metadata: Metadata) -> bool:
    """Whether a stream was broken off only to be opened again elsewhere."""
    return code == codes.ABORTED and any(kind in _REDIRECTS for kind, _ in status.details(metadata))
