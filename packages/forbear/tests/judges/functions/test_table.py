"""The table itself: keys, versions, names, the modes, and what notes say."""

import contextlib
import logging
from typing import Any

import httpx
import pytest
import requests

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.events import Reason, Recovered, WouldStop
from forbear.evidence import walk
from forbear.evidence.sent import Sent
from forbear.http.request import Place, Request
from forbear.judges.arguments import Arguments
from forbear.judges.facts import Facts, Word, http_facts
from forbear.judges.functions import ROWS, judge_sent, row_of
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.http_clients import SYNC

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
LOST, OK = Answer(end="close"), reply(200, b"{}")
KEY = "charge-4711-2026"
STORAGE = "storage.googleapis.com"


def row(method: str, host: str, target: str, *arguments: Any, body: bytes | None = b"", **headers: str) -> str:
    """Return the row of the table for a request, with the run's arguments."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    sent = Sent("requests", "http", method, Request(method, host, target, named, body))
    return row_of(http_facts(sent, Arguments(None, arguments, {}), ())).code


UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=lock"


FOUND = [
    ("read", row("GET", "shop.example", "/orders")),
    ("safe", row("PUT", "shop.example", "/orders/1")),
    ("never", row("POST", "shop.example", "/orders")),
    ("never", row("GET", "shop.example", "/", x_http_method_override="POST")),
    ("read", row("POST", "cloudresourcemanager.googleapis.com", "/v3/projects/p:getIamPolicy")),
    (
        "new_key",
        row("POST", "shop.example", "/charges", KEY, idempotency_key=KEY),
    ),  # K7
    ("key", row("POST", "api.stripe.com", "/v1/charges", KEY, idempotency_key=KEY)),
    ("new_key", row("POST", "api.stripe.com", "/v1/charges", idempotency_key=KEY)),  # K8
    ("absent", row("POST", STORAGE, f"{UPLOAD}&ifGenerationMatch=0")),
    ("drawn", row("POST", STORAGE, f"{UPLOAD}-1700000000123&ifGenerationMatch=0")),  # K9
    ("absent", row("POST", STORAGE, f"{UPLOAD}-1700000000123&ifGenerationMatch=0", "1700000000123")),
    ("version", row("POST", STORAGE, f"{UPLOAD}&ifGenerationMatch=1700000000000001")),
    ("version_kept", row("POST", STORAGE, f"{UPLOAD}&ifGenerationMatch=1700000000000001", 1700000000000001)),
    ("version", row("PATCH", STORAGE, "/storage/v1/b/bkt?ifMetagenerationMatch=1", 1)),  # K8: equal by chance
    ("version", row("PATCH", "shop.example", "/o/1", if_match='"abc"')),
    ("never", row("POST", STORAGE, UPLOAD)),
    ("never", row("POST", STORAGE, UPLOAD, KEY, x_goog_gcs_idempotency_token=KEY)),  # K7: Google promises nothing
]


@pytest.mark.parametrize(("expected", "found"), FOUND, ids=map(str, range(len(FOUND))))
def test_rows(expected: str, found: str) -> None:
    """Each request is read by the first row that fits."""
    assert found == expected


def test_a_read_by_post_writes_nothing_that_was_read_before() -> None:
    """A search is repeated, also after a read of what it searches; an unknown POST is not."""
    api, places = forbear.Api("https://shop.example", service="elasticsearch"), [Place.of("https://shop.example/items")]
    found = list[bool]()
    for path in ("/items/_search", "/items/_doc"):
        sent = Sent("httpx", "http", "POST", Request("POST", "shop.example", path, {}, b"{}"))
        found.append(judge_sent(sent, None, places, done=False, word=Word(apis=(api,))).repeatable)
    assert found == [True, False]


def test_every_row_that_stops_says_why_and_what_to_do() -> None:
    """A row that stops has a reason and a cure; codes are unique."""
    for each in ROWS:
        assert each.repeats or (each.why and each.cure)
    codes = [each.code for each in ROWS]
    assert len(set(codes)) == len(codes)


UNDER_KEY, MADE_BY_US = {"condition": "key", "kept": True}, {"condition": "key", "automatic": True, "done": True}
CHOSEN: dict[str, dict[str, Any]] = {
    "used_up": {"used_up": True, "is_read": True},
    "read": {"is_read": True, "safe": True, "read_before": True, "unread": "lost"},
    "not_sent": {"not_sent": True, "refused": True},
    "refused": {"refused": True, "rolled_back": True},
    "rolled_back": {"rolled_back": True, "vouched": True},
    "vouched": {"vouched": True, "still_open": True},
    "still_open": {"still_open": True, "rolled_back": False},
    "their_transaction": {"rolled_back": False, "unread": "lost"},
    "unread": {"unread": "lost", "commits_alone": True},
    "autocommit": {"commits_alone": True, "commits": True},
    "commits": {"commits": True, "claims": True},
    "claims": {"claims": True, "done": True, "condition": "absent", "safe": True},
    "made": {"done": True, "condition": "version", "kept": True},
    "version_kept": {"condition": "version", "kept": True, "safe": True},
    "version": {"condition": "version", "done": True, "safe": True},
    "drawn": {"condition": "absent", "drawn": True, "safe": True},
    "absent": {"condition": "absent", "kept": True, "safe": True},
    "read_before": {"safe": True, "read_before": True, **UNDER_KEY},
    "safe": {"safe": True, "rolled_back": False, **MADE_BY_US},
    "expired": {**UNDER_KEY, "until": 1e9},
    "key": UNDER_KEY,
    "used_key": {**MADE_BY_US, "kept": True, "until": 1e9},
    "new_key": {"condition": "key", "done": True},
    "never": {"read_before": True, "done": True},
}
"""For each row facts that lead to it, and to a later one if it were not there."""


@pytest.mark.parametrize("code", [each.code for each in ROWS])
def test_the_first_row_that_fits_decides(code: str) -> None:
    """Each row has facts that lead to it."""
    facts = Facts(Sent("requests", "http", "POST"))
    vars(facts).update(CHOSEN[code])
    assert row_of(facts).code == code


def post(url: str) -> object:
    """Send a POST."""
    return SYNC["requests"]("POST", f"{url}/orders")


def test_the_note_is_ready_to_paste() -> None:
    """The note names method, resource and the option; with that option the POST is repeated."""
    with Wire(LOST, LOST, OK) as wire, virtual_time():
        with pytest.raises(requests.ConnectionError) as caught:
            POLICY.call(post, wire.url)
        (note,) = caught.value.__notes__
        assert f"POST {wire.url}/orders may have been executed" in note
        option = note.partition("safe=")[2].partition(" [")[0].strip('"')
        POLICY.with_changes(safe=option).call(post, wire.url)
        assert len(wire.seen) == 3


def test_warn(caplog: pytest.LogCaptureFixture) -> None:
    """`enforce="warn"` repeats, and tells every time: by an event, and in the log."""
    events = list[object]()
    with Wire(LOST, LOST, OK) as wire, virtual_time(), caplog.at_level(logging.WARNING, "forbear"):
        POLICY.with_changes(enforce="warn", on_event=events.append).call(post, wire.url)
        assert len(wire.seen) == 3
        told = [event for event in events if isinstance(event, WouldStop)]
        assert [event.attempt for event in told] == [1, 2]
        assert f"POST {wire.url}/orders" in told[0].text
    assert sum("would be the last" in line for line in caplog.messages) == 2


def fail() -> None:
    """Fail without evidence."""
    raise ValueError("nothing is shown")


def test_unknown() -> None:
    """`unknown="stop"` stops where nothing is shown, and gives that as the reason."""
    with virtual_time(), pytest.raises(ValueError, match="nothing") as caught:
        POLICY.with_changes(unknown="stop").call(fail)
    report = forbear.report(caught.value)
    assert report is not None
    assert (report.reason, report.count) == (Reason.UNSAFE, 1)
    assert 'unknown="stop"' in report.text


@pytest.mark.parametrize("option", ["unknown", "enforce"])
def test_wrong_modes(option: str) -> None:
    """A wrong value is refused, with the right ones."""
    options: Any = {option: "always"}
    with pytest.raises(ValueError, match=f'`{option}` must be "'):
        forbear.retry(OSError, **options)
    with pytest.raises(TypeError, match="`safe` must hold patterns"):
        forbear.retry(OSError, safe=[1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="`safe` must hold patterns"):
        forbear.retry(OSError, safe="POST https://*/x")


def test_l7_a_conflict_with_ones_own_work() -> None:
    """L7: the second attempt meets what the first one made; report, event and log say so, also if it returns."""
    events = list[object]()
    with Wire(LOST, reply(412)) as wire, virtual_time():

        def create(*, catch: bool) -> str:
            response = requests.patch(f"{wire.url}/lock", headers={"If-None-Match": "*"}, timeout=5)
            if catch and response.status_code == 412:
                return "taken"
            response.raise_for_status()
            return "mine"

        policy = forbear.retry(on=forbear.transient, attempts=3, on_event=events.append)
        assert policy.call(create, catch=True) == "taken"
        (recovered,) = (event for event in events if isinstance(event, Recovered))
        assert recovered.maybe_done
    with Wire(LOST, reply(412)) as wire, virtual_time(), contextlib.suppress(requests.HTTPError):
        try:
            policy.call(create, catch=False)
        except requests.HTTPError as error:
            report = forbear.report(error)
            assert report is not None
            assert report.maybe_done
            raise


def test_a_policy_of_a_service_is_not_widened() -> None:
    """Evidence only ever stops: a function under a service's policy is not repeated because a GET was lost."""
    from forbear.services import rfc9110

    with Wire(LOST, OK) as wire, virtual_time(), pytest.raises(requests.ConnectionError):
        rfc9110.policy.call(SYNC["requests"], "GET", wire.url)


def test_what_an_adapter_found_safe() -> None:
    """An adapter that stopped at a limit has found that the request may be repeated, by its own `safe=`."""
    for safe, sent in ((True, 4), (False, 1)):
        with Wire(LOST) as wire, virtual_time():
            word = [f"POST {wire.url}/orders"] if safe else []
            transport = RetryTransport(attempts=2, safe=word, transport=httpx.HTTPTransport(verify=False))
            policy = forbear.retry(on=Exception, attempts=2, retry_exhausted=True)
            with httpx.Client(transport=transport) as client, pytest.raises(httpx.RemoteProtocolError):
                policy.call(client.post, f"{wire.url}/orders")
            assert len(wire.seen) == sent


def test_a_version_is_judged_anew_after_an_adapter() -> None:
    """The adapter may repeat the same version; the function would read a newer one."""
    with Wire(LOST) as wire, virtual_time():
        transport = RetryTransport(attempts=2, transport=httpx.HTTPTransport(verify=False))
        policy = forbear.retry(on=Exception, attempts=2, retry_exhausted=True)
        with httpx.Client(transport=transport) as client, pytest.raises(httpx.RemoteProtocolError):
            policy.call(client.put, f"{wire.url}/counter", headers={"If-Match": '"7"'})
        assert len(wire.seen) == 2


def test_a_refusal_counts_for_the_host_of_the_url_alone() -> None:
    """A Host header that names another host might decide who answers."""
    api = forbear.Api("https://shop.example", not_executed=[429])
    for host, expected in (("shop.example", True), ("other.example", False)):
        sent = Sent("requests", "http", "POST", Request("POST", "shop.example", "/", {"host": host}), status=429)
        assert http_facts(sent, Arguments(None, (), {}), (), (api,)).not_sent is expected


def test_a_client_that_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known client whose error shows no request is no silent risk: a warning names it, once."""

    def read_nothing(error: BaseException, handled: BaseException | None = None) -> None:
        return None

    monkeypatch.setattr(walk, "read", read_nothing)
    monkeypatch.setattr(walk, "_warned", set[str]())
    with Wire(LOST, LOST, OK) as wire, virtual_time():
        with pytest.warns(RuntimeWarning, match="found no request in ConnectionError of requests 2") as told:
            POLICY.call(post, wire.url)
        assert len(told) == 1


@pytest.mark.parametrize(
    ("limits", "hours", "sent"),
    [
        ({"attempts": 3}, 24, 3),
        ({"attempts": 3}, None, 1),  # a Retry-After of up to 15 minutes may come first
        ({"attempts": 3, "timeout": 60}, None, 3),
        ({"attempts": 3, "timeout": 3600}, None, 1),
    ],
    ids=str,
)
def test_k6_a_key_that_the_server_may_have_forgotten(limits: dict[str, Any], hours: float | None, sent: int) -> None:
    """K6: a key counts only as long as the server remembers it, 5 minutes if nobody says, less 10 %."""

    def charge(url: str, key: str) -> None:
        requests.post(url, headers={"Idempotency-Key": key}, timeout=5)

    with Wire(LOST) as wire, virtual_time():
        api = forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=hours))
        with pytest.raises(requests.ConnectionError) as caught:
            forbear.retry(on=OSError, apis=[api], **limits).call(charge, wire.url, KEY)
        assert len(wire.seen) == sent
    assert ("may have forgotten" in str(caught.value.__notes__)) is (sent == 1)
