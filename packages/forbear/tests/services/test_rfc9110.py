"""Hosts that nobody described: methods, preconditions and statuses by RFC 9110."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.service import Judgement
from forbear.core.verdict import PERMANENT, TRANSIENT, Kind, Safety, Verdict
from forbear.http.request import Request
from forbear.services.rfc9110 import RFC9110, Rfc9110


def _judge(method: str, **headers: str) -> Judgement:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RFC9110.classify(Request(method, "api.example.com", "/orders/7?x=1", named))


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "TRACE"])
def test_reads_are_always_repeatable(method: str) -> None:
    """Reads change nothing."""
    assert _judge(method) == Judgement("rfc9110", None, Safety.ALWAYS, repeatable=True, mutation=False)


@pytest.mark.parametrize(("method", "maybe_done"), [("PUT", (412,)), ("DELETE", (404, 410, 412))])
def test_idempotent_mutations_are_always_repeatable(method: str, maybe_done: tuple[int, ...]) -> None:
    """A second PUT or DELETE leaves the same state, whatever its response."""
    assert _judge(method) == Judgement("rfc9110", None, Safety.ALWAYS, repeatable=True, maybe_done=maybe_done)


@pytest.mark.parametrize(
    "method", ["POST", "PATCH", "CONNECT", "PROPPATCH", "post", "get", "put", "", "GET ", "G\u0415T"]
)
def test_all_else_is_never_repeatable(method: str) -> None:
    """Other methods, and anything that is no method, may do harm twice."""
    assert _judge(method) == Judgement("rfc9110", None, Safety.NEVER)


def test_if_match_with_a_strong_tag_makes_a_patch_repeatable() -> None:
    """A change of one version can succeed only once; 412 may then mean that it has."""
    judgement = _judge("PATCH", if_match='"v1"')
    assert (judgement.safety, judgement.repeatable) == (Safety.CONDITIONAL, True)
    assert (judgement.met, judgement.conditions) == ("If-Match:", ("If-Match:",))
    assert judgement.maybe_done == (412,)
    assert judgement.mutation


@pytest.mark.parametrize("method", ["POST", "LOCK", "post", "patch"])
def test_if_match_guards_nothing_else(method: str) -> None:
    """A POST may create something elsewhere and leave the version of its target as it is, so that it holds again."""
    assert _judge(method, if_match='"v1"') == Judgement("rfc9110", None, Safety.NEVER)
    assert not _judge("PATCH", if_match='"v1"', x_http_method_override=method).repeatable or method == "patch"


@pytest.mark.parametrize(
    "headers",
    [
        {"if_match": "*"},
        {"if_match": ""},
        {"if_match": 'W/"v1"'},
        {"if_match": "v1"},
        {"if_match": '"v1", W/"v2"'},
        {"if_none_match": '"v1"'},
        {"if_unmodified_since": "Sun, 06 Nov 1994 08:49:37 GMT"},
        {"etag": '"v1"'},
    ],
)
def test_conditions_that_may_hold_again_are_no_guard(headers: dict[str, str]) -> None:
    """A condition that can hold again after the first success, or is never compared strongly, guards nothing."""
    assert not _judge("PATCH", **headers).repeatable


@pytest.mark.parametrize(
    ("method", "value", "repeatable"),
    [
        ("PATCH", "*", True),
        ("PATCH", " * ", True),
        ("PATCH", '"v1"', False),
        ("PATCH", "", False),
        ("POST", "*", False),
    ],
)
def test_if_none_match_guards_a_patch_that_creates(method: str, value: str, repeatable: bool) -> None:
    """The target of a PATCH is there afterwards; the target of a POST need not be."""
    judgement = _judge(method, if_none_match=value)
    assert judgement.repeatable is repeatable
    assert judgement.met == ("If-None-Match: *" if repeatable else None)
    assert judgement.conditions == (("If-Match:", "If-None-Match: *") if repeatable else ())


@pytest.mark.parametrize("header", ["x_http_method_override", "x_http_method", "x_method_override"])
@pytest.mark.parametrize(
    ("method", "override", "like"),
    [
        ("POST", "GET", "POST"),
        ("GET", "POST", "POST"),
        ("GET", "patch", "POST"),
        ("GET", "", "POST"),
        ("GET", "DELETE", "DELETE"),
        ("POST", "PUT", "POST"),
        ("PUT", "GET", "PUT"),
        ("DELETE", "PUT", "DELETE"),
        ("GET", "head", "GET"),
    ],
)
def test_the_more_dangerous_method_counts(header: str, method: str, override: str, like: str) -> None:
    """Not every server obeys an override, and not every server ignores it."""
    assert _judge(method, **{header: override}) == _judge(like)


@pytest.mark.parametrize("header", ["x-http-method-override", "x-http-method", "x-method-override"])
@pytest.mark.parametrize(
    ("method", "override", "repeatable"),
    [
        ("PUT", "POST", False),
        ("DELETE", "PATCH", False),
        ("GET", "PUT", False),
        ("PUT", "DELETE", False),
        ("GET", "head", True),
        ("PUT", "put", True),
    ],
)
@pytest.mark.parametrize("host", ["cloudtasks.googleapis.com", "drive.googleapis.com"])
def test_an_override_counts_for_google_too(
    host: str, header: str, method: str, override: str, repeatable: bool
) -> None:
    """An RPC is judged only if all methods are the same."""
    request = Request(method, host, "/v2/projects/p/locations/l/queues/q", {header: override})
    assert Rfc9110().classify(request).repeatable is repeatable


def test_an_overridden_patch_may_create() -> None:
    """The guard is judged by the method that counts."""
    assert _judge("GET", x_http_method="PATCH", if_none_match="*").repeatable


@pytest.mark.parametrize(
    ("status", "headers", "verdict"),
    [
        (200, {}, None),
        (304, {}, None),
        (404, {}, PERMANENT),
        (501, {}, PERMANENT),
        (500, {}, TRANSIENT),
        (408, {}, TRANSIENT),
        (503, {}, Verdict(Kind.TRANSIENT, throttled=True)),
    ],
)
def test_statuses_have_their_verdict(status: int, headers: dict[str, str], verdict: Verdict | None) -> None:
    """Responses mean what their statuses say."""
    assert RFC9110.verdict(_judge("GET"), status, headers) == verdict


def test_the_service_can_be_compared_and_pickled() -> None:
    """All are the same one, in any process, so that policies with it can be compared and pickled."""
    assert pickle.loads(pickle.dumps(RFC9110)) == RFC9110 == Rfc9110()
    assert RFC9110.name == "rfc9110"
    assert RFC9110.token_header is None


TEXT = st.text(st.characters(codec="ascii"), max_size=12)


@given(
    TEXT, st.dictionaries(st.sampled_from(["if-match", "if-none-match", "x-http-method", "x-method-override"]), TEXT)
)
def test_no_request_raises(method: str, headers: dict[str, str]) -> None:
    """Whatever is sent is judged, and nothing but the known methods is repeatable without a guard."""
    judgement = RFC9110.classify(Request(method, "h", "/", headers))
    if judgement.repeatable and judgement.met is None:
        assert method in {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}


@pytest.mark.parametrize(
    ("method", "target", "repeatable"),
    [
        ("PUT", "/calendar/v3/calendars/c/events/e", True),
        ("PUT", "/calendar/v3/calendars/c/events/e?sendUpdates=none", True),
        ("PUT", "/calendar/v3/calendars/c/events/e?sendUpdates=all", False),
        ("PUT", "/calendar/v3/calendars/c/events/e?sendUpdates=none&sendUpdates=all", False),
        ("DELETE", "/calendar/v3/calendars/c/events/e?sendNotifications=true", False),
        ("GET", "/v2/projects/p/locations/l/catalogs/c/userEvents:collect?userEvent=x", False),
        ("GET", "/v1/projects/p/locations/l/datasets/d/datasetVersions/v:restore", False),
        ("GET", "/v1/projects/p/locations/l/datasets/d/datasetVersions/v", True),
        ("GET", "/v0/b/bkt/o/a:restore", True),
    ],
)
def test_writes_of_google_that_notify_and_reads_that_act(method: str, target: str, repeatable: bool) -> None:
    """Guests would get a second mail, and an event would be written twice; the reason is given."""
    judgement = RFC9110.classify(Request(method, "www.googleapis.com", target, {}))
    assert judgement.repeatable is repeatable
    assert (judgement.unknown is None) is repeatable
    assert RFC9110.classify(Request(method, "api.example.com", target, {})).repeatable


AZURE = {"x-ms-version": "2026-02-06"}


@pytest.mark.parametrize(
    ("query", "headers", "repeatable", "maybe_done"),
    [
        ("", {}, True, (412,)),
        ("?comp=block&blockid=MQ==", {}, True, (412,)),
        ("?comp=appendblock", {}, False, ()),
        ("?comp=appendblock", {"x-ms-blob-condition-appendpos": "0"}, True, (412,)),
        ("?comp=appendblock&comp=block", {}, False, ()),
        ("?comp=snapshot", {}, False, ()),
        ("?restype=share&comp=snapshot", {}, False, ()),
        ("?comp=lease", {"x-ms-lease-action": "acquire"}, True, (409, 412)),
        ("?comp=properties", {"x-ms-sequence-number-action": "Increment"}, False, ()),
        ("?comp=properties", {"x-ms-sequence-number-action": "max"}, True, (412,)),
        ("", {"x-ms-rename-source": "/c/old"}, True, (404, 412)),
    ],
)
def test_puts_of_azure_storage(
    query: str, headers: dict[str, str], repeatable: bool, maybe_done: tuple[int, ...]
) -> None:
    """A PUT that appends, counts or makes a snapshot is sent once; a conflict may come from an earlier attempt."""
    judgement = RFC9110.classify(Request("PUT", "a.blob.core.windows.net", f"/c/b{query}", AZURE | headers))
    assert (judgement.repeatable, judgement.maybe_done if repeatable else ()) == (repeatable, maybe_done)
    signed = RFC9110.classify(Request("PUT", "a.blob.core.windows.net", f"/c/b{query}", headers))
    assert signed == judgement
