"""Requests that users vouch for, through every adapter: what becomes repeatable, and what reports say."""

import re
from typing import Any

import httpx
import pytest

import forbear
from forbear.clients.httpx import RetryTransport
from forbear.clients.urllib3 import Retry
from forbear.core.decide import Reason
from forbear.http.request import Request
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import BLIND_TOO, EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

BUSY, FINE = reply(503), reply(200)
TWICE = forbear.retry(on=Exception, attempts=2)
BATCH = "/batch/storage/v1"


@EVERY
@pytest.mark.parametrize("failure", [BUSY, reply(429), Answer(end="reset")], ids=["503", "429", "reset"])
def test_a_pattern(flavour: Flavour, failure: Answer) -> None:
    """A POST that a pattern covers is repeated after an unknown outcome; another path is sent once."""
    with Wire(failure, FINE) as wire:
        transport = flavour.transport(safe=f"POST {wire.url}/search*")
        assert flavour.call(transport, "POST", f"{wire.url}/search:all", content=b"q").status == 200
        assert [seen.body for seen in wire.seen] == [b"q", b"q"]
    with Wire(failure, FINE) as wire:
        transport = flavour.transport(safe=f"POST {wire.url}/search*")
        assert flavour.call(transport, "POST", f"{wire.url}/create", content=b"q").report.reason is Reason.UNSAFE
        assert len(wire.seen) == 1


@EVERY
def test_a_function_of_the_request(flavour: Flavour) -> None:
    """It sees headers and body."""

    def is_search(request: Request) -> bool:
        return request.body == b"q" and "x-search" in request.headers

    with Wire(BUSY, FINE, BUSY) as wire:
        transport = flavour.transport(safe=is_search)
        assert flavour.call(transport, "POST", wire.url, content=b"q", headers={"X-Search": "1"}).status == 200
        assert flavour.call(transport, "POST", wire.url, content=b"q").status == 503


@EVERY
def test_a_scope(flavour: Flavour) -> None:
    """It covers what its block sends, and nothing afterwards."""
    with Wire(BUSY, FINE, BUSY) as wire:
        with forbear.safe_to_repeat(f"POST {wire.url}/search"):
            assert flavour.call(flavour.transport(), "POST", f"{wire.url}/search", content=b"q").status == 200
        assert flavour.call(flavour.transport(), "POST", f"{wire.url}/search", content=b"q").status == 503
        assert len(wire.seen) == 3


@EVERY
def test_a_refusal(flavour: Flavour) -> None:
    """A status by which the origin refuses is repeated whatever the request is; any other status is not."""
    with Wire(reply(429), FINE, BUSY) as wire:
        transport = flavour.transport(apis=forbear.Api(wire.url, not_executed=[429]))
        assert flavour.call(transport, "POST", wire.url, content=b"x").status == 200
        assert flavour.call(transport, "POST", wire.url, content=b"x").status == 503


@EVERY
@pytest.mark.parametrize("word", ["safe", "not_executed", "scope", "on_result"])
def test_reports_and_events_say_so(flavour: Flavour, word: str) -> None:
    """They say `vouched` where only the user's word allowed the retry, also where it failed again."""
    events: list[forbear.events.Event] = []
    policy = TWICE.with_on_event(events.append)
    with Wire(BUSY) as wire:
        options: dict[str, Any] = {}
        scope = f"POST {wire.url}/other"
        if word == "safe":
            options["safe"] = f"POST {wire.url}/"
        elif word == "not_executed":
            options["apis"] = forbear.Api(wire.url, not_executed=[503])
        elif word == "scope":
            scope = f"POST {wire.url}/"
        else:
            policy = policy.with_on_result(lambda _: forbear.verdicts.NOT_EXECUTED)
        with forbear.safe_to_repeat(scope):
            report = flavour.call(flavour.transport(policy, **options), "POST", f"{wire.url}/", content=b"x").report
        assert len(wire.seen) == 2
    assert (report.vouched, report.reason) == (True, Reason.ATTEMPTS)
    assert report.note.endswith("; a retry was allowed by the user's word alone [attempts]")
    assert [event.vouched for event in events if isinstance(event, forbear.events.Scheduled)] == [True]


@EVERY
def test_what_is_safe_anyway_needs_no_word(flavour: Flavour) -> None:
    """A GET, and a request that was certainly not sent, are repeated without the user's word."""
    with Wire(BUSY) as wire:
        transport = flavour.transport(TWICE, safe=[f"GET {wire.url}/", f"POST {wire.url}/"])
        assert not flavour.call(transport, "GET", f"{wire.url}/").report.vouched
    report = flavour.call(transport, "POST", f"{wire.url}/", content=b"x").report  # nobody listens there any more
    assert (report.vouched, report.reason) == (False, Reason.ATTEMPTS)


@EVERY
def test_the_cure_can_be_pasted(flavour: Flavour) -> None:
    """The note on a stopped request names the literal pattern that makes it repeatable; a query is filled in."""
    with Wire(BUSY, BUSY, FINE) as wire:
        url = f"{wire.url}/v1/users/83f1/search?token=abc"
        stopped = flavour.call(flavour.transport(), "POST", url, content=b"x").report
        assert "abc" not in stopped.note
        cure = re.search(r'safe="(.+)" \[unsafe\]$', stopped.note)
        assert cure is not None
        assert cure[1] == f"POST {wire.url}/v1/users/83f1/search?<fill in>"
        safe = cure[1].replace("<fill in>", "token=abc")
        assert flavour.call(flavour.transport(safe=safe), "POST", url, content=b"x").status == 200


@EVERY
def test_a_batch_is_beyond_any_word(flavour: Flavour, cloud: Cloud) -> None:
    """Its parts have outcomes of their own."""
    cloud.fault(Fault.status(503))
    safe, refused = f"POST {cloud.url}{BATCH}", forbear.Api(cloud.url, not_executed=[503])
    policy = cloud_storage.policy.with_on_result(lambda _: forbear.verdicts.NOT_EXECUTED)

    def always(request: Request) -> bool:
        return request.method == "POST"

    with forbear.safe_to_repeat(safe):
        transport = flavour.transport(policy, safe=always, apis=refused)
        headers = {"Content-Type": "multipart/mixed; boundary=b"}
        result = flavour.call(transport, "POST", cloud.url + BATCH, content=b"--b--", headers=headers)
    assert (result.status, len(cloud.requests)) == (503, 1)
    assert "safe=" not in result.report.note


@EVERY
def test_an_error_that_the_policy_calls_harmless(flavour: Flavour) -> None:
    """A verdict NOT_EXECUTED of `on` is the user's word, too: reports say so."""
    policy = forbear.retry(on=lambda _: forbear.verdicts.NOT_EXECUTED, attempts=2)
    with Wire(Answer(end="reset")) as wire:
        report = flavour.call(flavour.transport(policy), "POST", f"{wire.url}/", content=b"x").report
        assert (report.vouched, report.reason, len(wire.seen)) == (True, Reason.ATTEMPTS, 2)


def test_a_batch_whose_response_is_lost() -> None:
    """It is sent once, though `on` says that nothing was executed."""
    policy = forbear.retry(on=lambda _: forbear.verdicts.NOT_EXECUTED, attempts=2)
    sent: list[httpx.Request] = []

    def lose(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        raise httpx.ReadTimeout("lost", request=request)

    transport = RetryTransport(policy, transport=httpx.MockTransport(lose))
    with virtual_time(), httpx.Client(transport=transport) as client, pytest.raises(httpx.ReadTimeout):
        client.post("https://storage.googleapis.com" + BATCH)
    assert len(sent) == 1


@EVERY
def test_a_batch_that_succeeded_is_beyond_any_word(flavour: Flavour) -> None:
    """A verdict of `on_result` does not make a batch repeatable either."""
    policy = cloud_storage.policy.with_on_result(lambda _: forbear.verdicts.NOT_EXECUTED)
    headers = {"Content-Type": "multipart/mixed; boundary=b"}
    with Wire(FINE) as wire:
        transport = flavour.transport(policy)
        flavour.call(transport, "POST", wire.url + BATCH, content=b"--b--", headers=headers)
        assert len(wire.seen) == 1


@EVERY
def test_a_refusal_within_a_success(flavour: Flavour) -> None:
    """A response 200 that `on_result` calls NOT_EXECUTED is repeated by the user's word, and the report says so."""
    policy = TWICE.with_on_result(lambda _: forbear.verdicts.NOT_EXECUTED)
    with Wire(FINE) as wire:
        report = flavour.call(flavour.transport(policy), "POST", f"{wire.url}/", content=b"x").report
        assert len(wire.seen) == 2
    assert (report.vouched, report.reason) == (True, Reason.ATTEMPTS)


@EVERY
def test_a_spent_body_is_beyond_any_word(flavour: Flavour) -> None:
    """It cannot be sent again."""
    with Wire(BUSY) as wire:
        result = flavour.call(
            flavour.transport(safe=f"POST {wire.url}/", buffer=0), "POST", f"{wire.url}/", content=flavour.once([b"x"])
        )
        assert (result.report.reason, len(wire.seen)) == (Reason.BODY, 1)


@EVERY
def test_a_policy_that_repeats_nothing_in_doubt(flavour: Flavour) -> None:
    """`repeatable=False` is the user's last word, so the vouch does not count."""
    with Wire(BUSY) as wire:
        transport = flavour.transport(TWICE.with_repeatable(False), safe=f"POST {wire.url}/")
        result = flavour.call(transport, "POST", f"{wire.url}/", content=b"x")
        assert (result.report.reason, len(wire.seen)) == (Reason.UNSAFE, 1)
        assert "safe=" not in result.report.note


@EVERY
@pytest.mark.parametrize(
    ("answer", "status", "expected"),
    [
        (forbear.verdicts.TRANSIENT, 404, 2),
        (forbear.verdicts.PERMANENT, 503, 1),
        (True, 404, 2),
        (1.0, 404, 2),
        (False, 503, 2),
        (None, 503, 2),
        (KeyError("done"), 404, 1),
        (KeyError("done"), 503, 2),
    ],
)
def test_on_result_and_failed_responses(flavour: Flavour, answer: Any, status: int, expected: int) -> None:
    """It counts there as for a success, but code that fails on an error was written for successes alone."""

    def judge(response: Any) -> Any:
        if response.status_code == 200 if hasattr(response, "status_code") else response.status == 200:
            return False
        if isinstance(answer, Exception):
            raise answer
        return answer

    policy = forbear.retry(on=forbear.transient, attempts=2, on_result=judge)
    with Wire(reply(status), FINE) as wire:
        flavour.call(flavour.transport(policy), "GET", wire.url)
        assert len(wire.seen) == expected


@EVERY
@pytest.mark.parametrize(
    ("named", "add", "own", "failure", "expected"),
    [
        (True, False, "mine", 503, 2),
        (True, False, "mine", 409, 2),
        (True, False, "mine", 422, 1),
        (True, False, None, 503, 1),
        (True, False, "", 503, 1),
        (True, True, None, 503, 2),
        (True, True, "mine", 503, 2),
        (True, True, "mine", 409, 2),
        (True, True, None, 409, 1),
        (False, True, "mine", 503, 1),
        (False, True, "mine", 409, 1),
        (False, True, None, 503, 1),
    ],
)
def test_a_key_counts_where_the_user_says_so(
    flavour: Flavour, named: bool, add: bool, own: str | None, failure: int, expected: int
) -> None:
    """A key counts where the user said so; only `add` makes one, which is in use by nobody. All attempts carry it."""
    with Wire(reply(failure), FINE) as wire:
        key = forbear.IdempotencyKey("X-Key", add=add)
        api = forbear.Api(wire.url if named else "https://api.example.com", key=key)
        headers = {} if own is None else {"X-Key": own}
        flavour.call(flavour.transport(apis=[api]), "POST", wire.url, content=b"x", headers=headers)
        sent = [seen.header("x-key") for seen in wire.seen]
    assert len(sent) == expected
    assert len({*sent}) == 1
    assert (sent[0] is None) is (own is None and not (add and named))


@EVERY
@pytest.mark.parametrize("not_executed", [[], [503]])
def test_a_new_key_is_in_use_after_doubt(flavour: Flavour, not_executed: list[int]) -> None:
    """To a new key a 409 is transient only if an attempt before may still be executed; else it is a conflict."""
    with Wire(BUSY, reply(409), FINE) as wire:
        key = forbear.IdempotencyKey("X-Key", add=True)
        transport = flavour.transport(apis=forbear.Api(wire.url, key=key, not_executed=not_executed))
        result = flavour.call(transport, "POST", wire.url, content=b"x")
        assert (result.status, len(wire.seen)) == ((409, 2) if not_executed else (200, 3))
        assert len({seen.header("x-key") for seen in wire.seen}) == 1


@EVERY
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_elsewhere_loses_the_key(flavour: Flavour, status: int) -> None:
    """Neither the new key nor its promise goes to an origin that the user did not name: not to another port either."""
    with Wire(BUSY, FINE) as other, Wire(reply(status, b"", f"Location: {other.url}/pay")) as wire:
        transport = flavour.transport(apis=forbear.Api(wire.url, key=forbear.IdempotencyKey("X-Key", add=True)))
        client: Any = {} if flavour.name in ("requests", "aiohttp") else {"client": {"follow_redirects": True}}
        assert flavour.call(transport, "POST", wire.url, content=b"x", **client).status == 503
        assert [(seen.method, seen.header("x-key")) for seen in other.seen] == [("POST", None)]


@BLIND_TOO
@pytest.mark.parametrize("option", ["safe", "apis"])
def test_wrong_options(flavour: Flavour, option: str) -> None:
    """Every adapter refuses what it cannot use, by name."""
    kind: Any = Retry if flavour.name == "urllib3" else flavour.transport
    with pytest.raises((TypeError, ValueError), match=f"`{option}`"):
        kind(**{option: 7})


async def _never(*_: object) -> bool:
    return False


@EVERY
def test_async_functions(flavour: Flavour) -> None:
    """They are refused at once, since nothing awaits them."""
    with pytest.raises(TypeError, match="`safe` must not be async"):
        flavour.transport(safe=_never)


@EVERY
def test_keys_and_known_services(flavour: Flavour) -> None:
    """A key and a table for a host whose service forbear knows are refused."""
    words: list[dict[str, Any]] = [{"key": forbear.IdempotencyKey("Key")}, {"service": "iam"}]
    for options in words:
        api = forbear.Api("https://storage.googleapis.com", **options)
        with pytest.raises(ValueError, match=r"`apis` must name no `key` and no `service`.* is one of cloud_storage"):
            flavour.transport(apis=api)
    with pytest.raises(ValueError, match=r"`service` of an Api must be one of cloud_storage, .*; got 'redis'"):
        flavour.transport(apis=forbear.Api("https://api.example.com", service="redis"))


def test_urllib3_names_the_cure() -> None:
    """Its Retry object cannot be told, so the note says which adapter can."""
    from forbear_testkit.clients.others import Urllib3

    client = Urllib3()
    with Wire(BUSY) as wire, forbear.safe_to_repeat(f"POST {wire.url}/"):
        report = client.call(client.transport(), "POST", f"{wire.url}/", content=b"x").report
        assert len(wire.seen) == 1
    assert "RetryAdapter(safe=...)" in report.note
