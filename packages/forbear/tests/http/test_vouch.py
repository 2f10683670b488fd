"""Vouching: what the user's word changes, and what it never does."""

import pickle

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.api import Api
from forbear.http.request import Request
from forbear.http.vouch import NO_VOUCH, Vouch, apply_vouch, option_for

SEARCH = "POST https://api.example.com/v1/search*"
STRICT = Judgement("rfc9110", None, Safety.NEVER)
ORIGIN = "https://api.example.com"


def post(target: str, host: str = "api.example.com", scheme: str = "https") -> Request:
    """Return a POST without headers."""
    return Request("POST", host, target, {}, b"", scheme)


def test_the_judgement_is_only_raised() -> None:
    """Batches, upload sessions and what is repeatable already stay as they are."""
    request, safe = post("/v1/search"), Vouch(SEARCH)
    raised = apply_vouch(STRICT, request, safe)
    assert (raised.repeatable, raised.vouched) == (True, True)
    assert raised.replace(repeatable=False, vouched=False) == STRICT
    for judgement in (STRICT.replace(refused="a batch"), STRICT.replace(session=True), STRICT.replace(repeatable=True)):
        assert apply_vouch(judgement, request, safe) is judgement
    assert apply_vouch(STRICT, post("/v1/delete"), safe) is STRICT


def test_a_predicate() -> None:
    """It gets the request, and must return a bool."""
    assert apply_vouch(STRICT, post("/x"), Vouch(lambda request: request.target == "/x")).vouched
    assert apply_vouch(STRICT, post("/y"), Vouch(lambda request: request.target == "/x")) is STRICT
    with pytest.raises(TypeError, match="`safe` must return True or False, got 'yes'"):
        apply_vouch(STRICT, post("/x"), Vouch(lambda _: "yes"))  # type: ignore[arg-type, return-value]


def test_it_is_a_value() -> None:
    """It compares by what the user said, and pickles."""
    api = Api(ORIGIN, not_executed=[429])
    vouch = Vouch([SEARCH], [api])
    assert pickle.loads(pickle.dumps(vouch)) == vouch == Vouch((SEARCH,), Api(ORIGIN, not_executed={429})) != NO_VOUCH
    assert pickle.loads(pickle.dumps(vouch)).find_own_api(post("/a").origin) == api


def test_the_patterns_of_an_api() -> None:
    """They cover requests to its origin, beside the function of the adapter."""
    vouch = Vouch(lambda request: request.target == "/x", Api(ORIGIN, safe=["POST /search*"]))
    assert apply_vouch(STRICT, post("/search"), vouch).vouched
    assert apply_vouch(STRICT, post("/x"), vouch).vouched
    assert apply_vouch(STRICT, post("/search", host="b.example.com"), vouch) is STRICT


@pytest.mark.parametrize(
    ("request_", "option"),
    [
        (post("/a"), 'safe="POST https://api.example.com/a"'),
        (
            post("/a").replace(headers={"x-http-method": "PUT"}),
            'safe=["POST https://api.example.com/a", "PUT https://api.example.com/a"]',
        ),
        (post("/a/../b"), "a function of the request as `safe`"),
    ],
    ids=["one", "two", "none"],
)
def test_the_option(request_: Request, option: str) -> None:
    """It is as it is written, with each pattern that is needed, or a function where no pattern helps."""
    assert option_for(request_) == option
