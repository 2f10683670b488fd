"""Tables of one API, compiled: what two rows may share, and what they may not."""

from dataclasses import replace
from pathlib import Path

import pytest

from forbear.core.verdict import Safety
from forbear.grpc.call import GrpcCall
from forbear.http.request import Request
from forbear.tables.operations import ApiTable, rows
from forbear.tables.table import Rule

HEADER = "id,method,path,rpc,safety,safe_if,disputed_if,documented,maybe_done,source,effect,note"
TABLE = f"""{HEADER}
a.get,GET,/v1/a/{{a}}|/v1/b/{{b}},x.A/Get,always,,,,,page,none,
a.other,GET,/v2/a/{{a}},x.A/Get,always,,,,,page,none,
a.delete,DELETE,/v1/a/{{a}},,conditional,q:etag|f:etag,,,404,page,harm,
a.lock,POST,/v1/a/{{a}}:lock,x.A/Lock,conditional,b:etag|f:etag,,,NOT_FOUND,page,harm,
"""


def test_a_row_may_have_several_paths_and_no_rpc(tmp_path: Path) -> None:
    """Each path is the row's, and an RPC may have several rows that say the same."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE, encoding="utf-8")
    api = ApiTable("s", rows(path))
    for target in ("/v1/a/1", "/v1/b/1"):
        judgement = api.request(Request("GET", "h", target), target, "")
        assert judgement is not None
        assert judgement.operation == "a.get"
    read = api.call(GrpcCall("/x.A/Get"))
    assert read is not None
    assert (read.operation, read.repeatable, read.mutation) == ("x.A/Get", True, False)
    lock = api.call(GrpcCall("/x.A/Lock", {"etag": "x"}))
    assert lock is not None
    assert (lock.met, lock.conditions, lock.maybe_done, lock.safety) == ("etag", ("etag",), (5,), Safety.CONDITIONAL)
    assert api.call(GrpcCall("/x.A/Delete")) is None
    assert api.request(Request("PUT", "h", "/v1/a/1"), "/v1/a/1", "") is None


def test_rows_of_one_rpc_must_agree(tmp_path: Path) -> None:
    """A call says nothing of the path, so it cannot choose between two answers."""
    path = tmp_path / "t.csv"
    path.write_text(TABLE, encoding="utf-8")
    first, second, *_ = rows(path)
    with pytest.raises(ValueError, match=r"rows of one RPC must agree, got a\.other for x\.A/Get"):
        ApiTable("s", [first, replace(second, rule=Rule(Safety.NEVER))])
