"""The user's word about RPCs: what a pattern covers, and what a vouch never changes."""

import pickle

import grpc
import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.grpc.call import GrpcCall
from forbear.grpc.vouch import RpcPattern, RpcVouch, apply_vouch, rpc_patterns

STRICT = Judgement("grpc", "p.S/Get", Safety.NEVER)
EXHAUSTED, UNAVAILABLE = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("pattern", "name", "covered"),
    [
        ("/p.S/Get", "p.S/Get", True),
        ("p.S/Get", "p.S/Get", True),
        ("S/Get", "S/Get", True),
        ("/p.S/*", "p.S/Get", True),
        ("/p.S/Get*", "p.S/Get", True),
        ("/p.S/Get*", "p.S/GetAll", True),
        ("/p.S/*All", "p.S/GetAll", True),
        ("/p.S/G*t", "p.S/Get", True),
        ("/p.S/Get", "p.S/GetAll", False),
        ("/p.S/Get", "p.S/get", False),
        ("/p.S/Get", "p.S2/Get", False),
        ("/p.S/Get", "q.p.S/Get", False),
        ("/p.S/*", "p.S.T/Get", False),
        ("/p.S/*", "p.S", False),
        ("/p.S/*", "p.S/", False),
        ("/p.S/*", "p.S/Get/Delete", False),
        ("/p.S/Get*", "p.S/Ge", False),
        ("/p.S/aba*aba", "p.S/aba", False),
        ("/p.S/aba*aba", "p.S/ababa", False),
    ],
)
def test_a_pattern_must_match_service_and_method(pattern: str, name: str, covered: bool) -> None:
    """Service and method agree, but for what the `*` stands for."""
    assert RpcPattern(pattern).covers(name) is covered
    assert apply_vouch(STRICT, GrpcCall(f"/{name}"), RpcVouch(["x.Y/Z", pattern])).repeatable is covered


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Get", "full names of RPCs"),
        ("", "full names of RPCs"),
        ("*", "full names of RPCs"),
        ("/p.S/", "full names of RPCs"),
        ("//Get", "full names of RPCs"),
        ("/p.S/Get/All", "full names of RPCs"),
        ("/p.S/Gét", "full names of RPCs"),
        ("/p.S/Get\n", "full names of RPCs"),
        ("POST https://a.example/x", "full names of RPCs"),
        ("GET /p.S", "full names of RPCs"),
        ("/p.*/Get", "whose service is written out"),
        ("/*/*", "whose service is written out"),
        ("/p.S/**", "at most one `\\*`"),
        ("/p.S/*a*", "at most one `\\*`"),
    ],
)
def test_wrong_patterns(text: str, words: str) -> None:
    """The error names the parameter, the rule and the value."""
    with pytest.raises(ValueError, match=f"`safe` must hold .*{words}") as caught:
        rpc_patterns(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("safe", [7, None, [7], [None], [b"p.S/Get"]])
def test_wrong_types(safe: object) -> None:
    """Anything but names is refused."""
    with pytest.raises(TypeError, match="`safe` must"):
        rpc_patterns(safe)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_the_judgement_is_only_raised() -> None:
    """A judgement stays as it is if it is refused, that of a session, or repeatable already."""
    call, vouch = GrpcCall("/p.S/Get"), RpcVouch("/p.S/*")
    raised = apply_vouch(STRICT, call, vouch)
    assert (raised.repeatable, raised.vouched) == (True, True)
    assert raised.replace(repeatable=False, vouched=False) == STRICT
    for judgement in (STRICT.replace(refused="a batch"), STRICT.replace(session=True), STRICT.replace(repeatable=True)):
        assert apply_vouch(judgement, call, vouch) is judgement
        assert apply_vouch(judgement, call, RpcVouch(lambda _: True)) is judgement


def test_a_predicate() -> None:
    """It gets the call, and must return a bool."""
    vouch = RpcVouch(lambda call: call.message == {"name": "a"})
    assert apply_vouch(STRICT, GrpcCall("/p.S/Get", {"name": "a"}), vouch).vouched
    assert apply_vouch(STRICT, GrpcCall("/p.S/Get", {"name": "b"}), vouch) is STRICT
    assert apply_vouch(STRICT, GrpcCall("/p.S/Get"), vouch) is STRICT
    with pytest.raises(TypeError, match="`safe` must return True or False, got 'yes'"):
        apply_vouch(STRICT, GrpcCall("/p.S/Get"), RpcVouch(lambda _: "yes"))  # type: ignore[arg-type, return-value] # pyright: ignore[reportArgumentType]


def test_listed_statuses_are_refusals() -> None:
    """A listed status counts, unless the response was too large, or the call is refused or of a session."""
    vouch = RpcVouch(not_executed=[EXHAUSTED])
    assert vouch.is_refusal(STRICT, 8, "quota")
    assert not vouch.is_refusal(STRICT, 8, "CLIENT: Received message larger than max (5000 vs. 100)")
    assert not vouch.is_refusal(STRICT, 9, "quota")
    assert not vouch.is_refusal(STRICT.replace(refused="a batch"), 8, "quota")
    assert not vouch.is_refusal(STRICT.replace(session=True), 8, "quota")
    assert not RpcVouch().is_refusal(STRICT, 8, "quota")


@pytest.mark.parametrize("name", ["OK", "CANCELLED", "UNKNOWN", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE"])
def test_codes_that_prove_nothing(name: str) -> None:
    """gRPC itself ends calls with them that may have been executed."""
    with pytest.raises(ValueError, match=f"`not_executed` must not list {name}"):
        RpcVouch(not_executed=[EXHAUSTED, grpc.StatusCode[name]])


@pytest.mark.parametrize("listed", [8, "RESOURCE_EXHAUSTED", EXHAUSTED, [8], ["RESOURCE_EXHAUSTED"], None])
def test_wrong_codes(listed: object) -> None:
    """Only members of grpc.StatusCode are accepted, in a list."""
    with pytest.raises(TypeError, match="`not_executed` must list members of grpc"):
        RpcVouch(not_executed=listed)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_a_vouch_is_a_value() -> None:
    """It compares by its contents, and pickles."""
    vouch = RpcVouch("/p.S/Get*", [EXHAUSTED])
    assert pickle.loads(pickle.dumps(vouch)) == vouch == RpcVouch(["/p.S/Get*"], {EXHAUSTED})
    assert vouch != RpcVouch("/p.S/Get")
