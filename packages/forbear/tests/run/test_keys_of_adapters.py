"""Keys as adapters use them: which request gets which key, until when it counts, and what may not be sent with it."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

import forbear
from forbear.run import keys
from forbear.run.key_uses import AutomaticKey, KeyUse, SentKey
from forbear.run.keys import RunKeys, automatic_key, check_key, declare
from forbear.run.runtime import current
from forbear.run.state import Run
from forbear.testing import virtual_time
from forbear.testing.virtual_clock import VirtualTime

POLICY = forbear.retry(OSError, attempts=3, timeout=None, backoff=forbear.Constant(10))
MAY_BE_THE_SAME = (
    "an earlier attempt has sent a request whose outcome is unknown, and this one may be the same, although it differs "
    "or its key has expired; send a key of your own, forbear.run_key(...)"
)
ANOTHER_REQUEST = (
    "this attempt has sent the same key with another request, which the server would execute only once; name what each "
    "key is for: forbear.run_key(...)"
)


@pytest.fixture(name="time", autouse=True)
def _time() -> Iterator[VirtualTime]:
    with virtual_time() as time:
        time.advance(50)  # so that no run begins at zero
        yield time


def attempts(*works: Callable[[], object]) -> list[Any]:
    """Make an attempt of one run with each of the works; return what they return, or the texts of their errors."""
    results = list[Any]()

    def attempt() -> None:
        try:
            results.append(works[len(results)]())
        except (RuntimeError, TypeError) as error:
            results.append(str(error))
        if len(results) < len(works):
            raise OSError

    POLICY.call(attempt)
    return results


def send(request: object = "request", place: object = "POST host", span: float = 100) -> AutomaticKey:
    """Return the key for a request that an adapter sends now."""
    return automatic_key(place, request, span)


def test_automatic_keys_outside_of_runs(time: VirtualTime) -> None:
    """Each request has its own, for 90 % of the span, and nothing remembers it."""
    time.advance(7)
    began = current.get().monotonic()
    first, second = send(), send()
    assert first.key != second.key
    assert UUID(first.key).version == 4
    assert (first.place, first.request, first.path, first.until) == ("POST host", "request", (), began + 90)


def test_an_equal_request_of_the_next_attempt(time: VirtualTime) -> None:
    """It gets the key again, which counts from its first use, and until then."""
    first, again = attempts(send, send)
    assert again is first
    assert [attempt for _, attempt in first.path] == [2]

    def wait_and_send(seconds: float) -> Callable[[], object]:
        def work() -> object:
            time.advance(seconds)
            return send()

        return work

    began = current.get().monotonic()
    first, last = attempts(send, wait_and_send(80))  # after the wait of 10 s
    assert last is first
    assert current.get().monotonic() == first.until == began + 90
    assert attempts(send, wait_and_send(80.5))[1] == MAY_BE_THE_SAME


def succeed() -> None:
    """Send a request that succeeds."""
    send().succeeded()


SECOND: list[tuple[str, Callable[[], object], Callable[[], object], object]] = [
    ("another one", send, lambda: send("other"), MAY_BE_THE_SAME),
    ("one that nobody knows", lambda: send(None), lambda: send(None), MAY_BE_THE_SAME),
    ("another place", send, lambda: send(place="POST other"), AutomaticKey),
    ("after a success", succeed, lambda: send("other"), AutomaticKey),
    ("after a refusal", lambda: send().take_back(), lambda: send("other"), AutomaticKey),
]


@pytest.mark.parametrize(("first", "second", "end"), [case[1:] for case in SECOND], ids=[case[0] for case in SECOND])
def test_another_request_of_the_next_attempt(
    first: Callable[[], object], second: Callable[[], object], end: object
) -> None:
    """It may be the same one with another time in its body, unless it is certain what became of the first."""
    result = attempts(first, second)[1]
    assert result == end if isinstance(end, str) else isinstance(result, AutomaticKey)


def test_equal_requests_of_one_attempt() -> None:
    """Each is another one, and the next attempt gives them their keys in the same order."""

    def send_two() -> list[str]:
        return [send().key, send().key]

    first, second = attempts(send_two, send_two)
    assert first == second
    assert len(set(first)) == 2


def test_the_number_of_unknown_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has so many at most; those whose outcome is known do not count."""
    monkeypatch.setattr(keys, "_MOST", 2)

    def send_many() -> list[str]:
        for _ in range(5):
            send().succeeded()
        return [send().key, send().key, send().key]

    assert attempts(send_many) == [
        "the outcome of 2 requests of this run is unknown; decorate the function that sends one of them"
    ]
    assert len({send().key for _ in range(3)}) == 3


def test_what_became_of_an_automatic_key() -> None:
    """A refusal of the last request says nothing of an earlier one with the key; the next hop may send it again."""
    known: dict[str, AutomaticKey] = {}
    use = AutomaticKey("key", "place", "request", (), 5.0, known)
    assert (use.is_unknown, known) == (True, {"key": use})
    use.pass_on()
    assert (use.is_unknown, known) == (False, {"key": use})
    use.send_again(((1.0, 1),))
    assert (use.is_unknown, use.path) == (True, ((1.0, 1),))
    use.take_back()
    assert (use.is_unknown, known) == (False, {})
    use = AutomaticKey("key", "place", "request", (), 5.0, known)
    use.send_again(())
    use.take_back()
    assert (use.is_unknown, known) == (True, {"key": use})
    use.succeeded()
    assert (use.is_unknown, known) == (False, {})
    use.succeeded()


def test_keys_of_the_run_that_are_sent(time: VirtualTime) -> None:
    """An adapter learns for how long the run's key still counts; of any other key only the request is known."""
    assert check_key("key", "request") == (None, None, None)

    def work() -> None:
        key = forbear.run_key("charge")
        time.advance(20)
        left, sent, automatic = check_key(key, "request")
        assert left == pytest.approx(250)
        assert automatic is None
        assert isinstance(sent, SentKey)
        assert (sent.attempt, sent.request) == (1, "request")
        assert check_key(key, "request")[1] is sent
        left, other, automatic = check_key("another key", "request")
        assert (left, automatic) == (None, None)
        assert other is not sent
        time.advance(250 - 1e-6)
        assert check_key(key, "request")[0] == pytest.approx(0, abs=1e-5)
        time.advance(1)
        check_key(key, "request")

    assert attempts(work) == [
        (
            "the key was first used 271 s ago, and the server may have forgotten it; pass `hours`, the time that the "
            "server remembers it, to forbear.run_key"
        )
    ]


def test_a_key_at_its_end(time: VirtualTime) -> None:
    """It counts at the last moment, for an adapter and for `run_key`, and not after it."""

    def work() -> str:
        key = forbear.run_key("charge", hours=1)
        time.advance(3240)
        assert forbear.run_key("charge", hours=1) == key
        assert check_key(key, "request")[0] == 0
        time.advance(0.5)
        return forbear.run_key("charge", hours=1)

    assert attempts(work) == [
        (
            "`run_key` was first called with these parts 3240 s ago, and the server may have forgotten the key since; "
            "pass a shorter timeout to the policy, or `hours`, the time that the server remembers a key"
        )
    ]


def test_the_shortest_span_of_a_key_counts(time: VirtualTime) -> None:
    """Another call for the same parts cannot make it longer."""

    def work() -> str:
        for hours in (24, None, 24):
            forbear.run_key("charge", hours=hours)
        time.advance(271)
        return forbear.run_key("charge", hours=24)

    assert attempts(work)[0].startswith("`run_key` was first called with these parts 271 s ago")


def test_one_key_for_two_requests() -> None:
    """Within an attempt the server would execute the second one never, unless the first was taken back."""

    def work() -> object:
        _, sent, _ = check_key("key", "request")
        assert sent is not None
        sent.take_back()
        _, other, _ = check_key("key", "other")
        assert other is not None
        check_key("key", "other")
        other.take_back()
        return check_key("key", "request")

    def work_again() -> object:
        _, sent, _ = check_key("key", "request")
        assert sent is not None
        assert (sent.attempt, sent.request) == (2, "request")
        return check_key("key", "other")

    assert attempts(work, work_again) == [ANOTHER_REQUEST, ANOTHER_REQUEST]
    first, second = attempts(lambda: check_key("key", "a"), lambda: check_key("key", "b"))
    assert [first[1].request, second[1].request] == ["a", "b"]


def test_the_number_of_sent_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it a key is not remembered, and those that are known still are."""
    monkeypatch.setattr(keys, "_MOST", 2)

    def work() -> object:
        for key in ("a", "b", "c"):
            check_key(key, "request")
        check_key("c", "other")
        return check_key("b", "other")

    def work_again() -> object:
        check_key("b", "other")
        return check_key("b", "request")

    assert attempts(work, work_again) == [ANOTHER_REQUEST, ANOTHER_REQUEST]


def test_an_automatic_key_at_the_next_hop(time: VirtualTime) -> None:
    """The hop learns how long it counts, and notes that it sends it again."""

    def work() -> tuple[object, ...]:
        use = send()
        use.pass_on()
        time.advance(30)
        left, sent, automatic = check_key(use.key, "request")
        assert automatic is use
        assert (left, use.is_unknown) == (60, True)
        assert [attempt for _, attempt in use.path] == [1]
        assert sent is not None
        use.take_back()
        return (use.is_unknown,)

    assert attempts(work) == [(False,)]


def test_a_declared_key() -> None:
    """It has no end, and the run knows it as one that is the same in all attempts."""
    keyed = POLICY.with_changes(key=lambda: "charge-4711")
    assert keyed.call(lambda: check_key("charge-4711", "request")[0]) is None
    runtime = current.get()
    run = Run(POLICY, "work", runtime, runtime.monotonic())
    with pytest.raises(TypeError) as caught:
        declare(run, "short")
    assert str(caught.value) == (
        "`key` must return a str, bytes or UUID of at least 8 characters, or an int of at least 10**9, because shorter "
        "ones are equal by chance; got 'short'"
    )


TEXTS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (
        forbear.run_key,
        TypeError,
        (
            "`run_key` needs at least one part that says what the key is for: run_key('charge', order.id); one key for "
            "several calls would let the server execute only the first"
        ),
    ),
    (
        lambda: forbear.run_key("charge"),
        RuntimeError,
        (
            "`run_key` needs a run: call it in a function that forbear.retry decorates, or in a block, in the thread "
            "or task of the attempt; elsewhere, call it in the function itself and pass the key on"
        ),
    ),
    (
        lambda: forbear.run_key("charge", hours=0),
        ValueError,
        "`hours` must be positive and finite, got 0",
    ),
    (
        lambda: forbear.run_key("charge", hours="1"),  # type: ignore[arg-type]
        TypeError,
        "`hours` must be a number of hours, or None (5 minutes), got '1'",
    ),
    (
        lambda: POLICY.call(forbear.run_key, "charge", 1.5),  # type: ignore[arg-type]
        TypeError,
        "`parts` of run_key must be str, bytes, int or UUID, got 1.5",
    ),
]


@pytest.mark.parametrize(("call", "error", "text"), TEXTS, ids=map(str, range(len(TEXTS))))
def test_what_run_key_refuses(call: Callable[[], object], error: type[Exception], text: str) -> None:
    """The whole text says what a key needs."""
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value) == text


def test_the_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text has the number; the key that was made last still counts."""
    monkeypatch.setattr(keys, "_MOST", 2)

    def work() -> str:
        for part in (1, 2, 2):
            forbear.run_key(part)
        return forbear.run_key(3)

    assert attempts(work) == [
        (
            "`run_key` makes at most 2 keys in one run; decorate the function that does the work on one item, instead "
            "of the one with the loop"
        )
    ]


def test_the_keys_of_one_run() -> None:
    """Its own, the automatic ones whose outcome is unknown, and those of the run around it."""
    made, root = RunKeys(1.0), RunKeys(0.0)
    key = made.derive(("a", 1))
    assert made.derive(("a", 1)) == key
    assert UUID(key).version == 4
    use = made.use(key, 10.0, 100.0)
    assert isinstance(use, KeyUse)
    assert (use.first, use.last, use.until) == (10.0, 10.0, 100.0)
    assert made.use(key, 20.0, 50.0) is use
    assert (use.first, use.last, use.until) == (10.0, 20.0, 55.0)
    unknown = AutomaticKey("unknown", "place", "request", (), 5.0, made.automatic)
    AutomaticKey("passed on", "place", "request", (), 5.0, made.automatic).pass_on()
    assert [*made.texts] == [key, "unknown"]
    made.root = root
    other = root.derive(("a", 1))
    root.use(other, 0.0, 1.0)
    assert other != key
    assert [*made.texts] == [key, "unknown", other]
    unknown.succeeded()
    assert [*made.texts] == [key, other]
