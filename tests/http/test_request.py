"""Request and Judgement: what services are shown and what they answer."""

import pickle

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.request import Request


def test_a_request_has_defaults() -> None:
    """Without headers and body, a request has none; a body of None is one that is not at hand."""
    request = Request("GET", "example.com", "/x")
    assert request == Request("GET", "example.com", "/x", {}, b"")
    assert request != request.replace(body=None)


def test_a_request_keeps_what_it_is_given() -> None:
    """The headers are not copied: an adapter's own mapping will do."""
    headers = {"a": "b"}
    request = Request("PUT", "h", "/t", headers, b"x")
    assert (request.method, request.host, request.target, request.body) == ("PUT", "h", "/t", b"x")
    assert request.headers is headers


def test_a_judgement_is_cautious_by_default() -> None:
    """What nobody vouches for is a mutation that must not be repeated."""
    judgement = Judgement("s", None, Safety.NEVER)
    assert judgement == Judgement("s", None, Safety.NEVER, (), None, False, (), True, False, None)
    assert judgement.mutation
    assert not judgement.repeatable


@pytest.mark.parametrize(
    "value",
    [
        Request("GET", "h", "/t", {"a": "b"}, None),
        Judgement("s", "o", Safety.CONDITIONAL, ("c",), "c", True, (412,), False, True, "r"),
    ],
)
def test_values_can_be_pickled(value: Request | Judgement) -> None:
    """Both are plain values."""
    assert pickle.loads(pickle.dumps(value)) == value
