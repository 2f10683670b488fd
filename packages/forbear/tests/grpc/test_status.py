"""Ends of calls, with details as the real definitions encode them."""

from datetime import timedelta
from typing import Any

import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.verdict import CONFLICT, PERMANENT, TRANSIENT, Kind, Verdict
from forbear.grpc import codes
from forbear.grpc import status as grpc_status
from forbear.grpc.call import GrpcCall

THROTTLED = Verdict(Kind.TRANSIENT, throttled=True)


def trailer(*details: Any, message: str = "no") -> tuple[tuple[str, bytes], ...]:
    """The metadata that carries a status with these details."""
    status = status_pb2.Status(code=14, message=message)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return (("grpc-status-details-bin", status.SerializeToString()),)


def retry_info(seconds: float) -> error_details_pb2.RetryInfo:
    """A detail that asks for a wait."""
    delay = duration_pb2.Duration()
    delay.FromTimedelta(timedelta(seconds=seconds))
    return error_details_pb2.RetryInfo(retry_delay=delay)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("OK", None), ("CANCELLED", PERMANENT), ("UNKNOWN", PERMANENT), ("INVALID_ARGUMENT", PERMANENT),
        ("DEADLINE_EXCEEDED", TRANSIENT), ("NOT_FOUND", PERMANENT), ("ALREADY_EXISTS", PERMANENT),
        ("PERMISSION_DENIED", PERMANENT), ("RESOURCE_EXHAUSTED", THROTTLED), ("FAILED_PRECONDITION", PERMANENT),
        ("ABORTED", CONFLICT), ("OUT_OF_RANGE", PERMANENT), ("UNIMPLEMENTED", PERMANENT), ("INTERNAL", TRANSIENT),
        ("UNAVAILABLE", THROTTLED), ("DATA_LOSS", PERMANENT), ("UNAUTHENTICATED", PERMANENT),
    ],
)  # fmt: skip
def test_codes_have_their_verdict(name: str, verdict: Verdict | None) -> None:
    """The codes that nearly every client retries; ABORTED wants a new read, and is as good as transient for a read."""
    number = codes.NUMBERS[name]
    assert grpc_status.verdict(number) == verdict
    assert grpc_status.verdict(number, read=True) == (TRANSIENT if name == "ABORTED" else verdict)


def test_the_names_are_those_of_grpc() -> None:
    """Each has the number that the library gives it."""
    import grpc

    assert {code.name: code.value[0] for code in grpc.StatusCode} == codes.NUMBERS


def test_codes_beyond_the_list_are_permanent() -> None:
    """A number that nobody knows promises nothing."""
    assert grpc_status.verdict(17) is PERMANENT
    assert grpc_status.verdict(-1) is PERMANENT
    assert grpc_status.verdict(codes.INTERNAL, {codes.UNAVAILABLE}) is PERMANENT


@given(st.integers(-(2**63), 2**63 - 1), st.text(max_size=20))
def test_the_wire_is_read_as_it_is_written(number: int, text: str) -> None:
    """Numbers with their sign, texts and what lies between them."""
    data = status_pb2.Status(code=5, message=text).SerializeToString()
    assert grpc_status.submessages(data, 2) == ([text.encode()] if text else [])
    duration = duration_pb2.Duration(seconds=number).SerializeToString()
    assert [grpc_status.number(value) for _, value in grpc_status.parts(duration)] == ([number] if number else [])
    assert grpc_status.number(b"1") == 0


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"\x0d\x01\x02\x03\x04", [(1, b"\x01\x02\x03\x04")]),
        (b"\x09" + bytes(8), [(1, bytes(8))]),
        (b"\x0d\x01", []),
        (b"\x0b", []),
        (b"\x08", []),
        (b"\x08" + b"\xff" * 11, []),
        (b"\x12\x05ab", []),
    ],
)
def test_other_wire_types(data: bytes, parts: list[tuple[int, bytes]]) -> None:
    """Fixed numbers are passed over; groups, endless numbers and cut ends make a message unreadable."""
    assert grpc_status.parts(data) == parts


@pytest.mark.parametrize(
    ("replies", "statuses", "numbers"),
    [
        ((), (), ()),
        (("404",), (404,), (5,)),
        (("409",), (409,), (10, 6)),
        (("ABORTED", "409"), (409,), (10, 6)),
        (("NOT_FOUND", "FAILED_PRECONDITION"), (404, 400), (5, 9)),
        (("400",), (400,), (3, 9)),
    ],
)
def test_responses_of_tables(replies: tuple[str, ...], statuses: tuple[int, ...], numbers: tuple[int, ...]) -> None:
    """A table has statuses or names; either way both sides understand it."""
    assert codes.statuses(replies) == statuses
    assert codes.numbers(replies) == numbers


def test_a_response_that_is_neither_is_an_error() -> None:
    """A slip in a table must not go unnoticed."""
    with pytest.raises(KeyError):
        codes.statuses(("NOTFOUND",))
    with pytest.raises(KeyError):
        codes.numbers(("NOTFOUND",))


@pytest.mark.parametrize("reply", ["412", "499"])
def test_a_status_that_no_code_stands_for_is_an_error_on_the_row_of_an_rpc(reply: str) -> None:
    """It would say nothing there, and nobody would notice; a row of HTTP alone may have it."""
    assert codes.statuses((reply,)) == (int(reply),)
    with pytest.raises(KeyError, match=reply):
        codes.numbers((reply,))


def test_no_other_code_is_worth_another_try_where_every_5xx_is() -> None:
    """UNKNOWN, DATA_LOSS and UNIMPLEMENTED are final, whatever statuses HTTP has for them."""
    names = {codes.NAMES[code] for code in codes.codes_for(range(400, 600))}
    assert names == {"RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE", "DEADLINE_EXCEEDED"}


def test_a_call_can_be_compared_and_pickled() -> None:
    """The slash before the name of the RPC does not matter, and no message is an empty one."""
    assert GrpcCall("/a.B/C").name == GrpcCall("a.B/C").name == "a.B/C"
    assert GrpcCall("a.B/C") == GrpcCall("a.B/C", {}) != GrpcCall("a.B/C", {"x": 1})


def test_request_info() -> None:
    """The id by which the server knows the request; None without the detail, or without an id in it."""
    info = error_details_pb2.RequestInfo(request_id="id-1", serving_data="x")
    assert grpc_status.request_info(trailer(retry_info(1), info)) == "id-1"
    assert grpc_status.request_info(trailer(error_details_pb2.RequestInfo())) is None
    assert grpc_status.request_info(trailer(retry_info(1))) is None
    assert grpc_status.request_info(()) is None
