"""Conflicts and members, on the errors and policies of the real libraries."""

from typing import Any

import grpc
import httpx
import pytest
from google.api_core import iam as api_core_iam
from googleapiclient.errors import HttpError

import forbear
from forbear.services import iam
from forbear.testing import virtual_time
from forbear_testkit.services import errors
from forbear_testkit.services.errors import api_core

api_core_policy: Any = api_core_iam.Policy

ABORTED = b'{"error": {"code": 409, "status": "ABORTED"}}'
EXISTS = b'{"error": {"code": 409, "status": "ALREADY_EXISTS"}}'


@pytest.mark.parametrize("make", errors.OF_HTTP.values(), ids=errors.OF_HTTP)
@pytest.mark.parametrize(
    ("status", "body", "conflict"),
    [
        (409, ABORTED, True),
        (409, EXISTS, False),
        (409, b"", False),
        (412, b"", True),
        (404, b"", False),
        (500, ABORTED, False),
    ],
)
def test_responses_by_http(make: errors.Maker, status: int, body: bytes, conflict: bool) -> None:
    """A 409 that says ABORTED, from any client that keeps the body, and a 412; nothing else."""
    assert iam.is_conflict(make(status, body, {})) is conflict


@pytest.mark.parametrize("make", errors.OF_GRPC.values(), ids=errors.OF_GRPC)
@pytest.mark.parametrize(
    ("code", "conflict"),
    [
        (grpc.StatusCode.ABORTED, True),
        (grpc.StatusCode.ALREADY_EXISTS, False),
        (grpc.StatusCode.FAILED_PRECONDITION, False),
        (grpc.StatusCode.UNAVAILABLE, False),
    ],
)
def test_ends_of_calls(make: errors.CallMaker, code: grpc.StatusCode, conflict: bool) -> None:
    """ABORTED, and not FAILED_PRECONDITION: a state of the system that reading again does not change."""
    assert iam.is_conflict(make(code, ())) is conflict


@pytest.mark.parametrize(
    ("error", "conflict"),
    [
        (api_core.Aborted("x"), True),
        (api_core.AlreadyExists("x"), False),
        (api_core.Conflict("x"), False),
        (ValueError("409 ABORTED"), False),
        (httpx.ConnectError("x"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_errors_without_a_response_are_judged_by_class(error: BaseException, conflict: bool) -> None:
    """An error without a response is judged by its class, if that says anything."""
    assert iam.is_conflict(error) is conflict


def test_a_streamed_response_has_no_body_to_read() -> None:
    """A 409 whose body was not read is not taken for a conflict."""
    request = httpx.Request("POST", "https://iam.googleapis.com/")
    response = httpx.Response(409, stream=httpx.ByteStream(ABORTED), request=request)
    error = httpx.HTTPStatusError("x", request=request, response=response)
    assert not iam.is_conflict(error)
    response.read()
    assert iam.is_conflict(error)


ROLE, MEMBER = "roles/viewer", "user:a@example.com"
WHEN = {"title": "t", "expression": "request.time < x"}


@pytest.mark.parametrize(
    ("bindings", "plain", "conditional"),
    [
        ([], False, False),
        ([{"role": ROLE, "members": [MEMBER]}], True, False),
        ([{"role": ROLE, "members": []}], False, False),
        ([{"role": ROLE}], False, False),
        ([{"role": "roles/editor", "members": [MEMBER]}], False, False),
        ([{"role": ROLE, "members": ["user:b"]}, {"role": ROLE, "members": ["user:c", MEMBER]}], True, False),
        ([{"role": ROLE, "members": [MEMBER], "condition": WHEN}], False, True),
        ([{"role": ROLE, "members": [MEMBER], "condition": WHEN | {"description": ""}}], False, True),
        ([{"role": ROLE, "members": [MEMBER], "condition": WHEN | {"description": "d"}}], False, False),
        ([{"role": ROLE, "members": [MEMBER], "condition": WHEN | {"title": "u"}}], False, False),
    ],
)
def test_a_member_has_a_role_under_its_condition(
    bindings: list[dict[str, Any]], plain: bool, conditional: bool
) -> None:
    """A member has a role under exactly the condition asked for."""
    document = {"bindings": bindings, "etag": "BwX="}
    assert iam.has_member(ROLE, MEMBER)(document) is plain
    assert iam.has_member(ROLE, MEMBER, WHEN)(document) is conditional
    policy = api_core_policy("BwX=", 3)
    policy.bindings = [{**binding, "members": set(binding.get("members", ()))} for binding in bindings]
    assert iam.has_member(ROLE, MEMBER)(policy) is plain
    assert iam.has_member(ROLE, MEMBER, WHEN)(policy) is conditional


def test_members_of_a_message() -> None:
    """A protobuf policy has attributes; so may anything else."""

    class Binding:
        role, members, condition = ROLE, [MEMBER], None

    class Message:
        bindings = [Binding()]  # noqa: RUF012

    assert iam.has_member(ROLE, MEMBER)(Message())
    assert not iam.has_member(ROLE, MEMBER)(object())


def test_an_update_is_applied_once_after_a_lost_response_and_a_conflict() -> None:
    """A lost response and a conflict: the member is added once, by reading again each time."""
    stored = {"bindings": [{"role": ROLE, "members": ["user:b"]}], "etag": "1"}
    trouble: list[BaseException | None] = [errors.http_error(409, ABORTED, {}), ConnectionResetError("lost"), None]
    writes: list[str] = []

    def read() -> dict[str, object]:
        return {"bindings": [{"role": ROLE, "members": [*stored["bindings"][0]["members"]]}], "etag": stored["etag"]}  # type: ignore[index]

    def modify(policy: dict[str, object]) -> dict[str, object]:
        policy["bindings"][0]["members"].append(MEMBER)  # type: ignore[index]
        return policy

    def write(policy: dict[str, object]) -> None:
        error = trouble.pop(0)
        writes.append(type(error).__name__)
        if not isinstance(error, HttpError | httpx.HTTPStatusError):
            stored["bindings"] = policy["bindings"]  # type: ignore[assignment]
        if error is not None:
            raise error

    with virtual_time(seed=1):
        result = forbear.update(
            read=read,
            modify=modify,
            write=write,
            conflict=iam.is_conflict,
            mine=iam.has_member(ROLE, MEMBER),
            policy=iam.policy,
        )
    assert result["bindings"] == [{"role": ROLE, "members": ["user:b", MEMBER]}]
    assert writes == ["HTTPStatusError", "ConnectionResetError"]
