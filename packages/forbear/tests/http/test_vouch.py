"""Vouching: what the user's word changes, and what it never does."""

import pickle
from collections.abc import Mapping

import pytest

from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.http.request import Request
from forbear.http.vouch import NO_VOUCH, Vouch, option_for, vouched

SEARCH = "POST https://api.example.com/v1/search*"
STRICT = Judgement("rfc9110", None, Safety.NEVER)
ORIGIN = "https://api.example.com"


def post(target: str, host: str = "api.example.com", scheme: str = "https") -> Request:
    """Return a POST without headers."""
    return Request("POST", host, target, {}, b"", scheme)


def test_the_judgement_is_only_raised() -> None:
    """Batches, upload sessions and what is repeatable already stay as they are."""
    request, safe = post("/v1/search"), Vouch(SEARCH)
    raised = vouched(STRICT, request, safe)
    assert (raised.repeatable, raised.vouched) == (True, True)
    assert raised.replace(repeatable=False, vouched=False) == STRICT
    for judgement in (STRICT.replace(refused="a batch"), STRICT.replace(session=True), STRICT.replace(repeatable=True)):
        assert vouched(judgement, request, safe) is judgement
    assert vouched(STRICT, post("/v1/delete"), safe) is STRICT


def test_a_predicate() -> None:
    """It gets the request, and must return a bool."""
    assert vouched(STRICT, post("/x"), Vouch(lambda request: request.target == "/x")).vouched
    assert vouched(STRICT, post("/y"), Vouch(lambda request: request.target == "/x")) is STRICT
    with pytest.raises(TypeError, match="`safe` must return True or False, got 'yes'"):
        vouched(STRICT, post("/x"), Vouch(lambda _: "yes"))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    ("origin", "request_", "expected"),
    [
        (ORIGIN, post("/a"), True),
        ("https://API.example.com:443/", post("/a"), True),
        (ORIGIN, post("/a", host="api.example.com:8443"), False),
        (ORIGIN, post("/a", scheme="http"), False),
        (ORIGIN, post("/a", host="b.api.example.com"), False),
        (ORIGIN, post("/a").replace(headers={"host": "evil.example"}), False),
        ("http://[::1]:8080", post("/a", host="[::1]:8080", scheme="http"), True),
    ],
)
def test_refusals_are_of_one_origin(origin: str, request_: Request, expected: bool) -> None:
    """Scheme, host and port must agree."""
    vouch = Vouch(not_executed={origin: [429]})
    assert vouch.is_refusal(STRICT, request_, 429, {}) is expected
    assert not vouch.is_refusal(STRICT, request_, 503, {})
    assert not NO_VOUCH.is_refusal(STRICT, request_, 429, {})


def test_it_is_a_value() -> None:
    """It compares by what the user said, and pickles."""
    vouch = Vouch([SEARCH], {ORIGIN: [429]})
    assert pickle.loads(pickle.dumps(vouch)) == vouch == Vouch((SEARCH,), {ORIGIN: [429]}) != NO_VOUCH
    assert pickle.loads(pickle.dumps(vouch)).is_refusal(STRICT, post("/a"), 429, {})


def test_no_refusal_for_what_has_parts() -> None:
    """A part of a batch or of an upload may have been executed, whatever the user says."""
    vouch = Vouch(not_executed={ORIGIN: [429]})
    for judgement in (STRICT.replace(refused="a batch"), STRICT.replace(session=True)):
        assert not vouch.is_refusal(judgement, post("/a"), 429, {})


def test_a_function_sees_status_and_headers() -> None:
    """It must return a bool."""

    def limited(status: int, headers: Mapping[str, str]) -> bool:
        return status == 400 and headers.get("x-error") == "limit"

    vouch = Vouch(not_executed={ORIGIN: limited})
    assert vouch.is_refusal(STRICT, post("/a"), 400, {"x-error": "limit"})
    assert not vouch.is_refusal(STRICT, post("/a"), 400, {})
    wrong = Vouch(not_executed={ORIGIN: lambda _, __: None})  # type: ignore[dict-item, return-value]
    with pytest.raises(TypeError, match="`not_executed` must return True or False, got None"):
        wrong.is_refusal(STRICT, post("/a"), 400, {})


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ([429], TypeError, r"map origins to statuses, such as .*; got \[429\]"),
        ({429: [429]}, TypeError, "got the origin 429"),
        ({"https://*": [429]}, ValueError, r"got the origin 'https://\*'"),
        ({"api.example.com": [429]}, ValueError, "got the origin 'api.example.com'"),
        ({f"{ORIGIN}/v1": [429]}, ValueError, f"without a path; got '{ORIGIN}/v1'"),
        ({f"{ORIGIN}/?a": [429]}, ValueError, "without a path"),
        ({ORIGIN: 429}, TypeError, "got the statuses 429"),
        ({ORIGIN: "429"}, TypeError, "got the statuses '429'"),
        ({ORIGIN: ["429"]}, ValueError, "from 400 to 599; got '429'"),
        ({ORIGIN: [True]}, ValueError, "from 400 to 599; got True"),
        ({ORIGIN: [200]}, ValueError, "from 400 to 599; got 200"),
    ],
)
def test_wrong_refusals(wrong: object, kind: type[Exception], words: str) -> None:
    """The error names the option, the rule and the value."""
    with pytest.raises(kind, match=f"`not_executed` must .*{words}"):
        Vouch(not_executed=wrong)  # type: ignore[arg-type]


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
