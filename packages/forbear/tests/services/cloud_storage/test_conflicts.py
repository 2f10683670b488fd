"""Conflicts on buckets and objects, and marks by which a write is known again."""

import pickle
import re

import grpc
import httpx
import pytest
from google.protobuf import any_pb2
from google.rpc import status_pb2  # type: ignore[import-untyped]

import forbear
from forbear.services import cloud_storage
from forbear.services.cloud_storage import WriteToken
from forbear.testing import virtual_time
from forbear_testkit.services import errors

NOT_MET = b'{"error": {"code": 412, "errors": [{"reason": "conditionNotMet", "domain": "global"}]}}'
FORBIDDEN = b'{"error": {"code": 412, "errors": [{"reason": "orgPolicyConstraintFailed"}]}}'
XML = b"<?xml version='1.0'?><Error><Code>PreconditionFailed</Code></Error>"


@pytest.mark.parametrize("make", errors.OF_HTTP.values(), ids=errors.OF_HTTP)
@pytest.mark.parametrize(
    ("status", "body", "conflict"),
    [
        (412, NOT_MET, True),
        (412, XML, True),
        (412, b"", True),
        (412, b'{"error": {"errors": "conditionNotMet"}}', True),
        (412, b"[]", True),
        (412, FORBIDDEN, False),
        (409, NOT_MET, False),
        (503, b"", False),
    ],
)
def test_responses_by_http(make: errors.Maker, status: int, body: bytes, conflict: bool) -> None:
    """A 412, unless its body gives another reason."""
    assert cloud_storage.is_conflict(make(status, body, {})) is conflict


def _redirect() -> errors.Trailing:
    detail = any_pb2.Any(type_url="type.googleapis.com/google.storage.v2.BidiWriteObjectRedirectedError")
    return (("grpc-status-details-bin", status_pb2.Status(code=10, message="x", details=[detail]).SerializeToString()),)


@pytest.mark.parametrize("make", errors.OF_GRPC.values(), ids=errors.OF_GRPC)
def test_ends_of_calls(make: errors.CallMaker) -> None:
    """FAILED_PRECONDITION and ABORTED, but no redirect."""
    assert cloud_storage.is_conflict(make(grpc.StatusCode.FAILED_PRECONDITION, ()))
    assert cloud_storage.is_conflict(make(grpc.StatusCode.ABORTED, ()))
    assert not cloud_storage.is_conflict(make(grpc.StatusCode.ABORTED, _redirect()))
    assert not cloud_storage.is_conflict(make(grpc.StatusCode.NOT_FOUND, ()))


def test_other_errors_are_no_conflicts() -> None:
    """An error without a response is no conflict."""
    for error in (ValueError("412"), httpx.ConnectError("x"), ConnectionResetError(), KeyboardInterrupt()):
        assert not cloud_storage.is_conflict(error)


def test_a_mark_is_known_again() -> None:
    """It is in what it was added to, and in nothing else; what was given stays as it was."""
    token, other = WriteToken(), WriteToken()
    given = {"name": "a", "metadata": {"k": "v"}}
    marked = token.add_to(given)
    assert given == {"name": "a", "metadata": {"k": "v"}}
    assert marked["metadata"]["k"] == "v"
    assert token.is_in(marked)
    assert not other.is_in(marked)
    assert token.is_in(other.add_to(marked)), "another writer must not wipe it out before its own has looked"
    others: list[dict[str, object]] = [{}, {"metadata": None}, {"metadata": {}}, {"labels": marked["metadata"]}]
    for resource in others:
        assert not token.is_in(resource)
        assert token.is_in(token.add_to(resource))


def test_old_marks_are_removed() -> None:
    """A mark is kept as long as a run may look for it, then it is None, by which the API removes a key."""
    first, second = WriteToken(keep=60), WriteToken(keep=60)
    with virtual_time() as time:
        marked = first.add_to({"metadata": {"k": "v", "forbear-write-odd": "not a time"}})
        time.advance(60)
        assert first.is_in(second.add_to(marked))
        time.advance(1)
        later = second.add_to(marked)["metadata"]
    assert later[first.key] is None
    assert later["k"] == "v"
    assert later["forbear-write-odd"] == "not a time"


def test_a_mark_on_a_bucket_is_a_valid_label() -> None:
    """Labels are lower-case letters, digits and dashes, at most 63 of them."""
    token = WriteToken("labels")
    for text in next(iter(token.add_to({})["labels"].items())):
        assert re.fullmatch(r"[a-z][a-z0-9-]{0,62}|[a-z0-9-]{1,63}", text)
    assert pickle.loads(pickle.dumps(token)) == token != WriteToken("labels")
    with pytest.raises(TypeError, match="`field` must be the name of a map"):
        WriteToken("")
    with pytest.raises(ValueError, match="`keep` must be zero or more"):
        WriteToken(keep=-1)


def test_an_update_is_applied_once_after_a_lost_response() -> None:
    """The response to a write is lost and another client is quicker: the change is made once all the same."""
    token = WriteToken()
    stored: dict[str, object] = {"metageneration": "1", "metadata": {"count": "1"}}
    applied: list[str] = []

    def modify(document: dict[str, object]) -> dict[str, object]:
        metadata: dict[str, str] = dict(document["metadata"])  # type: ignore[call-overload]
        return token.add_to({**document, "metadata": metadata | {"count": str(int(metadata["count"]) + 1)}})

    def write(document: dict[str, object]) -> None:
        if document["metageneration"] != stored["metageneration"]:
            raise errors.http_error(412, NOT_MET, {})
        applied.append(str(document["metadata"]))
        stored.update(document, metageneration=str(int(str(stored["metageneration"])) + 1))
        raise ConnectionResetError("the reply is lost")

    with virtual_time(seed=1):
        result = forbear.update(
            read=lambda: dict(stored),
            modify=modify,
            write=write,
            conflict=cloud_storage.is_conflict,
            mine=token.is_in,
            policy=cloud_storage.policy,
        )
    assert token.is_in(result)
    assert len(applied) == 1
