"""Which policy and which table apply to a request, and what a policy's own hooks have to say."""

from typing import Any

import pytest

import forbear
from forbear import Constant, Limits, Policy
from forbear.budgets import Budget
from forbear.events import Event, Failed, GaveUp, Reason, Recovered, Scheduled
from forbear.services import cloud_storage, rfc9110
from forbear.verdicts import NOT_EXECUTED, Verdict
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.flavours import Flavour, Result
from forbear_testkit.clients.others import EVERY
from forbear_testkit.clients.wire import Answer, Wire, reply

INSERT = "/upload/storage/v1/b/bkt/o?uploadType=media&name=new"


@pytest.mark.parametrize(
    ("host", "target", "requests"),
    [
        ("https://storage.googleapis.com", INSERT, 1),
        ("https://storage.googleapis.com", INSERT + "&ifGenerationMatch=0", 2),
        ("https://www.googleapis.com", INSERT + "&ifGenerationMatch=0", 2),
        ("https://storage.googleapis.com.evil.example", INSERT + "&ifGenerationMatch=0", 1),
        ("https://api.example.com", INSERT + "&ifGenerationMatch=0", 1),
    ],
)
def test_known_hosts_have_their_tables_and_all_others_rfc_9110(
    flavour: Flavour, cloud: Cloud, host: str, target: str, requests: int
) -> None:
    """The host says which API it is; a POST to a host that nobody knows is sent once."""
    cloud.fault(Fault.status(503))
    transport = flavour.transport(transport=flavour.rerouted(cloud.url))
    flavour.call(transport, "POST", host + target, content=b"x")
    assert len(cloud.requests) == requests


def test_a_delete_is_judged_by_who_is_asked(flavour: Flavour, cloud: Cloud) -> None:
    """RFC 9110 lets a DELETE be repeated, Cloud Storage only under a condition: a newer object could be hit."""
    target = "/storage/v1/b/bkt/o/thing"
    for host, requests in (("https://api.example.com", 2), ("https://storage.googleapis.com", 1)):
        cloud.requests.clear()
        cloud.fault(Fault.status(503, when="after"))
        flavour.call(flavour.transport(transport=flavour.rerouted(cloud.url)), "DELETE", host + target)
        assert len(cloud.requests) == requests


def test_what_goes_over_the_wire_is_judged(flavour: Flavour, cloud: Cloud) -> None:
    """A raw target that replaces that of the URL is the one that counts."""
    cloud.fault(Fault.status(503))
    url = cloud.url + INSERT + "&ifGenerationMatch=0"
    result = flavour.call(
        flavour.transport(cloud_storage.policy), "POST", url, content=b"x", extensions={"target": INSERT.encode()}
    )
    assert (result.status, len(cloud.requests)) == (503, 1)


def test_any_other_policy_leaves_known_hosts_their_tables(flavour: Flavour, cloud: Cloud) -> None:
    """A policy for errors in general brings limits and backoff, and not what is safe."""
    policy = forbear.retry(on=flavour.library.TransportError, backoff=Constant(3))
    for target, requests in ((INSERT, 1), (INSERT + "&ifGenerationMatch=0", 2)):
        cloud.requests.clear()
        cloud.fault(Fault.reset())
        transport = flavour.transport(policy, transport=flavour.rerouted(cloud.url))
        result = flavour.call(transport, "POST", "https://storage.googleapis.com" + target, content=b"x")
        assert len(cloud.requests) == requests
        assert result.slept == [3.0] * (requests - 1)


@pytest.mark.parametrize(
    ("answer", "method", "requests", "slept"),
    [
        (False, "GET", 1, []),
        (0.25, "GET", 2, [0.25]),
        (0.25, "POST", 1, []),
        (NOT_EXECUTED.replace(delay=1.5), "POST", 2, [1.5]),
    ],
)
def test_on_has_the_last_word(
    flavour: Flavour, answer: bool | float | Verdict, method: str, requests: int, slept: list[float]
) -> None:
    """The answer of `on` about an error holds: no, so many seconds, or a verdict of its own."""
    with Wire(Answer(end="reset"), reply(200)) as wire:
        result = flavour.call(flavour.transport(forbear.retry(on=lambda error: answer)), method, wire.url)
        assert (len(wire.seen), result.slept) == (requests, slept)


def test_on_need_not_know_what_was_never_sent(flavour: Flavour) -> None:
    """An error that is retried and certainly not executed is repeatable for every method, after the wait `on` names."""
    errors = [flavour.library.ConnectError("refused")]

    def before(request: Any) -> None:
        if errors:
            raise errors.pop()

    with Wire(reply(200)) as wire:
        transport = flavour.transport(forbear.retry(on=lambda error: 2.5), transport=flavour.tampered(before))
        result = flavour.call(transport, "POST", wire.url, content=b"x")
    assert (result.status, result.slept) == (200, [2.5])


def test_a_policy_may_forbid_what_the_table_allows(flavour: Flavour) -> None:
    """`repeatable=False` holds for a GET, too."""
    with Wire(reply(503)) as wire:
        result = flavour.call(flavour.transport(forbear.retry(on=forbear.transient, repeatable=False)), "GET", wire.url)
        assert len(wire.seen) == 1
    assert result.report.reason is Reason.UNSAFE


def test_one_request_has_a_policy_of_its_own(flavour: Flavour) -> None:
    """The extension names another policy for one request, None sends it once, and anything else is an error."""
    for policy, requests in ((rfc9110.policy.with_attempts(2), 2), (None, 1)):
        with Wire(reply(503)) as wire:
            result = flavour.call(flavour.transport(), "GET", wire.url, extensions={"forbear": policy})
            assert (result.status, len(wire.seen)) == (503, requests)
    wrong = flavour.call(flavour.transport(), "GET", "http://127.0.0.1", extensions={"forbear": 3})
    assert isinstance(wrong.error, TypeError)
    assert "`policy` must be a forbear.Policy" in str(wrong.error)


def test_disabled_means_disabled(flavour: Flavour, cloud: Cloud) -> None:
    """With retries off there is one attempt, and nothing of ours in the request or the response."""
    cloud.fault(Fault.status(503))
    with forbear.disabled():
        url = cloud.url + INSERT + "&ifGenerationMatch=0"
        result = flavour.call(flavour.transport(cloud_storage.policy), "POST", url, content=b"x")
    assert (result.status, len(cloud.requests)) == (503, 1)
    assert "x-goog-gcs-idempotency-token" not in cloud.requests[0].headers
    assert forbear.report(result.response) is None


@pytest.mark.parametrize(("status", "method", "requests"), [(202, "GET", 2), (404, "GET", 2), (202, "POST", 1)])
def test_on_result_judges_responses(flavour: Flavour, status: int, method: str, requests: int) -> None:
    """`on_result` may refuse a response that the service takes for final; what is unsafe stays unsafe."""

    def refused(response: Any) -> forbear.verdicts.Verdict | bool:
        assert response.request.method == method
        return forbear.verdicts.TRANSIENT if response.status_code == status else False

    policy = forbear.retry(on=forbear.transient, on_result=refused)
    with Wire(reply(status), reply(200)) as wire:
        result = flavour.call(flavour.transport(policy), method, wire.url)
        assert (result.status, len(wire.seen)) == (200 if requests == 2 else status, requests)


@EVERY
@pytest.mark.parametrize("status", [200, 202, 403, 425])
def test_on_result_obeys_the_server(flavour: Flavour, status: int) -> None:
    """A response that only `on_result` refuses may ask for a wait like any other, and for one that is too long."""

    def refused(response: Any) -> forbear.verdicts.Verdict | bool:
        found: int = response.status if hasattr(response, "status") else response.status_code
        return forbear.verdicts.TRANSIENT if found == status else False

    policy = forbear.retry(on=forbear.transient, timeout=600, on_result=refused)
    for wait, requests in ((30, 2), (700, 1)):
        with Wire(reply(status, b"", f"Retry-After: {wait}"), reply(204)) as wire:
            result = flavour.call(flavour.transport(policy), "GET", wire.url)
            assert len(wire.seen) == requests
        assert [30 <= delay <= 33 for delay in result.slept] == [True] * (requests - 1)


def test_an_error_of_on_result_closes_the_response(flavour: Flavour) -> None:
    """The error of `on_result` is raised, and the response that it saw is closed."""

    def fail(response: Any) -> bool:
        raise ZeroDivisionError

    transport = flavour.transport(forbear.retry(on=forbear.transient, on_result=fail))
    with Wire(reply(200, b"ok")) as wire:
        result = flavour.call(transport, "GET", wire.url)
    assert isinstance(result.error, ZeroDivisionError)


def events_of(
    flavour: Flavour, url: str, policy: Policy, method: str = "GET", **options: Any
) -> tuple[list[Event], Result]:
    """Return the events of a request, and how it ended."""
    events: list[Event] = []
    result = flavour.call(flavour.transport(policy.with_on_event(events.append)), method, url, **options)
    return events, result


def test_events_tell_what_happens_in_order(flavour: Flavour, cloud: Cloud) -> None:
    """Failed and Scheduled before each wait, Recovered or GaveUp in the end, all under the operation's name."""
    cloud.store.put("bkt", "thing", b"abc")
    cloud.fault(Fault.status(503), Fault.reset())
    events, result = events_of(flavour, cloud.url + "/storage/v1/b/bkt/o/thing", cloud_storage.policy)
    assert [type(event) for event in events] == [Failed, Scheduled, Failed, Scheduled, Recovered]
    assert {event.operation for event in events} == {"storage.objects.get"}
    delays = [event.delay for event in events if isinstance(event, Scheduled)]
    assert delays == pytest.approx(result.slept, abs=0.5)


def test_events_tell_the_end(flavour: Flavour) -> None:
    """An operation without a name is known by method and host; a first attempt that succeeds is no event."""
    with Wire(reply(503)) as wire:
        events, _ = events_of(flavour, wire.url, rfc9110.policy.with_attempts(1))
    assert [type(event) for event in events] == [Failed, GaveUp]
    assert events[0].operation == "GET 127.0.0.1"
    with Wire(reply(200)) as wire:
        assert events_of(flavour, wire.url, rfc9110.policy)[0] == []


def test_events_tell_of_a_body_that_broke(flavour: Flavour, cloud: Cloud) -> None:
    """A download that went on has an operation of its own."""
    cloud.store.put("bkt", "thing", b"abc" * 100)
    cloud.fault(Fault.truncate(10))
    events, result = events_of(flavour, cloud.url + "/storage/v1/b/bkt/o/thing?alt=media", cloud_storage.policy)
    assert result.content == b"abc" * 100
    assert [type(event) for event in events] == [Failed, Scheduled, Recovered]
    assert {event.operation for event in events} == {"storage.objects.get (body)"}


def test_a_budget_is_shared_and_ends_runs(flavour: Flavour) -> None:
    """Retries cost tokens and successes put some back, at the first attempt as well."""
    policy = rfc9110.policy.with_budget(Budget.brooker(capacity=1, deposit=0.5)).with_backoff(Constant(0))
    with Wire(reply(503), reply(200), reply(503), reply(200), reply(200), reply(503), reply(200)) as wire:
        ends = [flavour.call(flavour.transport(policy), "GET", wire.url) for _ in range(5)]
        assert [end.status for end in ends] == [200, 503, 200, 200, 200]
        assert ends[1].report.reason is Reason.BUDGET


@pytest.mark.parametrize("client", [{"timeout": 10.0}, {"timeout": None}])
def test_the_attempt_timeout_becomes_the_clients_own(flavour: Flavour, client: dict[str, Any]) -> None:
    """`attempt_timeout` bounds every timeout of the client, and what is left of the whole bounds it."""
    seen: list[dict[str, float]] = []

    def before(request: Any) -> None:
        seen.append(request.extensions["timeout"])

    policy = rfc9110.policy.with_limits(Limits(attempts=2, timeout=7)).with_backoff(Constant(5))
    with Wire(reply(503)) as wire:
        transport = flavour.transport(policy.with_attempt_timeout(4), transport=flavour.tampered(before))
        flavour.call(transport, "GET", wire.url, client=client)
    assert seen == [dict.fromkeys(("connect", "read", "write", "pool"), pytest.approx(limit)) for limit in (4, 2)]


def test_maybe_done_is_said_of_a_response_that_an_earlier_success_would_lead_to(flavour: Flavour, cloud: Cloud) -> None:
    """404 to a DELETE after a lost response, but not after a failure that had certainly no effect."""
    item = cloud.store.put("bkt", "thing", b"abc")
    url = f"{cloud.url}/storage/v1/b/bkt/o/thing?generation={item.generation}"
    cloud.fault(Fault.reset(when="after"))
    result = flavour.call(flavour.transport(cloud_storage.policy), "DELETE", url)
    assert result.status == 404
    assert result.report.maybe_done
    doubt = "; an earlier attempt may have worked (settle= reads back whether it did) [permanent]"
    assert result.report.note.endswith(doubt)
    errors = [flavour.library.ConnectError("refused")]

    def before(request: Any) -> None:
        if errors:
            raise errors.pop()

    transport = flavour.transport(cloud_storage.policy, transport=flavour.tampered(before))
    again = flavour.call(transport, "DELETE", url)
    assert again.status == 404
    assert not again.report.maybe_done


def test_a_batch_is_refused_with_a_cure(flavour: Flavour, cloud: Cloud) -> None:
    """Nobody can judge a batch, so it is sent once, and the report says what to do instead."""
    cloud.fault(Fault.status(503))
    result = flavour.call(
        flavour.transport(cloud_storage.policy), "POST", cloud.url + "/batch/storage/v1", content=b"x"
    )
    assert (result.status, len(cloud.requests)) == (503, 1)
    assert result.report.text.endswith("send each of them alone")
