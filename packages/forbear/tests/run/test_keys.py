"""Keys of a run: what a real server executes that honours them, and what a simpler key would break."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import requests

import forbear
from forbear.events import Reason
from forbear.run import keys
from forbear.run.doubt import leave_same_unknown, was_left_unknown
from forbear.run.open_runs import run_keys
from forbear.testing import virtual_time
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.forms import FORMS

LOST, OK = Answer(end="close"), reply(200, b"{}")
OUTER = forbear.retry(on=OSError, attempts=3, timeout=None)


def policy(wire: Wire, **changes: Any) -> forbear.Policy:
    """Return a policy that knows that the server honours keys."""
    api = forbear.Api(wire.url, key=forbear.IdempotencyKey("Idempotency-Key", hours=24))
    return OUTER.with_changes(apis=[api], **changes)


def charge(wire: Wire, key: str) -> object:
    """Send a charge with a key."""
    return requests.post(f"{wire.url}/charges", headers={"Idempotency-Key": key}, timeout=5)


def executed(wire: Wire) -> int:
    """Return how many charges a server executes that honours keys."""
    return len({seen.header("idempotency-key") for seen in wire.seen})


@pytest.mark.unmutated
@pytest.mark.parametrize("form", FORMS)
def test_all_attempts_have_one_key(form: str) -> None:
    """A lost charge is sent again with its key, and executed once; the next run has another key."""
    with Wire(LOST, OK) as wire, virtual_time():
        for _ in range(2):
            FORMS[form](policy(wire), lambda: charge(wire, forbear.run_key("charge", 4711)))
        assert len(wire.seen) == 3
        assert executed(wire) == 2


def test_the_result_is_the_text_of_a_uuid() -> None:
    """Any API takes a UUID."""
    key = OUTER.call(forbear.run_key, "charge")
    assert str(UUID(key)) == key


def test_k4_one_key_for_several_calls() -> None:
    """K4: a key needs parts that say what it is for; each order has its own, and all are charged."""
    with pytest.raises(TypeError, match="at least one part that says what the key is for"):
        OUTER.call(forbear.run_key)

    with Wire(OK, LOST, OK) as wire, virtual_time():

        def charge_all(orders: list[int]) -> None:
            for order in orders:
                charge(wire, forbear.run_key("charge", order))

        policy(wire).call(charge_all, [1, 2, 3])
        assert len(wire.seen) == 5
        assert executed(wire) == 3


def test_k5_the_outermost_run_counts() -> None:
    """K5: an inner run makes no second key for each attempt of the outer one."""
    with Wire(LOST, LOST, LOST, OK) as wire, virtual_time():

        @policy(wire, attempts=2)
        def inner() -> object:
            return charge(wire, forbear.run_key("charge"))

        policy(wire, retry_exhausted=True).call(inner)
        assert len(wire.seen) == 4
        assert executed(wire) == 1


def test_k6_a_key_is_forgotten() -> None:
    """K6: no attempt begins, and `run_key` returns nothing, after 90 % of the key's span."""
    with Wire(LOST) as wire, virtual_time() as time:
        with pytest.raises(requests.ConnectionError) as caught:
            policy(wire, backoff=forbear.Constant(271)).call(lambda: charge(wire, forbear.run_key("charge")))
        report = forbear.report(caught.value)
        assert report is not None
        assert (report.reason, len(wire.seen)) == (Reason.UNSAFE, 1)
        assert "may have forgotten the key" in report.text

        def slow(hours: float | None) -> None:
            forbear.run_key("charge", hours=hours)
            time.advance(271)
            forbear.run_key("charge", hours=hours)

        OUTER.call(slow, 24)
        with pytest.raises(RuntimeError, match="first called with these parts 271 s ago"):
            OUTER.call(slow, None)


def test_an_inner_run_does_not_mind_keys_of_others() -> None:
    """A key that only the outer run uses does not end an inner one."""
    with virtual_time() as time:
        failures = [OSError(), OSError()]

        def inner() -> str:
            if failures:
                raise failures.pop()
            return "done"

        def outer() -> str:
            forbear.run_key("first message")
            time.advance(300)
            return OUTER.call(inner)

        assert OUTER.call(outer) == "done"


PARTS: list[tuple[object, ...]] = [
    ("a", "bc"), ("ab", "c"), ("abc",), (b"abc",), ("1",), (1,), (b"1",), (-1,), ("a", 1), (UUID(int=1),),
    (str(UUID(int=1)),), ("a", ""), ("", "a"), ("a\ud800",),
]  # fmt: skip


def test_k10_parts_are_told_apart() -> None:
    """K10: parts are encoded with their type and their length."""
    made = OUTER.call(lambda: [forbear.run_key(*parts) for parts in PARTS])  # type: ignore[arg-type]
    assert len(set(made)) == len(PARTS)
    for wrong in (True, 1.0, None, ["a"]):
        with pytest.raises(TypeError, match="`parts` of run_key must be str, bytes, int or UUID"):
            OUTER.call(forbear.run_key, wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`hours` must be"):
        OUTER.call(forbear.run_key, "a", hours=0)


def test_k7_a_key_that_the_host_ignores() -> None:
    """K7: also the key of a run counts only where somebody says that the server honours it."""
    with Wire(LOST) as wire, virtual_time(), pytest.raises(requests.ConnectionError) as caught:
        OUTER.call(lambda: charge(wire, forbear.run_key("charge")))
    assert len(wire.seen) == 1
    assert "a key that may be new in each attempt" in str(caught.value.__notes__)


def test_a_name_made_of_a_key_is_not_drawn() -> None:
    """K9: a create under the run's own key is the same in each attempt."""
    with Wire(LOST, reply(412)) as wire, virtual_time():

        def create() -> int:
            url = f"{wire.url}/locks/{forbear.run_key('lock')}"
            return requests.patch(url, headers={"If-None-Match": "*"}, timeout=5).status_code

        assert OUTER.call(create) == 412
        assert len({seen.target for seen in wire.seen}) == 1


def test_outside_of_a_run() -> None:
    """Without a run there is no key, and the error says where there is one."""
    with pytest.raises(RuntimeError, match="call it in a function that"):
        forbear.run_key("charge")
    with pytest.raises(RuntimeError, match="needs a run"):
        OUTER.call(in_thread, lambda: forbear.run_key("charge"))


def in_thread(work: Callable[[], object]) -> None:
    """Do the work in a thread without the context, and raise its error."""
    errors = list[BaseException]()

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    raise errors[0]


def in_child(work: Callable[[], str]) -> str:
    """Do the work in a forked child, and return what it returns, or the name of its error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = work()
        except BaseException as error:
            text = type(error).__name__
        os.write(writing, text.encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    return text


def test_a_forked_child() -> None:
    """A child belongs to no run of its parent; a run of its own makes other keys than any in the parent."""

    def attempt() -> tuple[str, str, str]:
        own = forbear.run_key("charge")
        return own, in_child(lambda: forbear.run_key("charge")), in_child(lambda: OUTER.call(forbear.run_key, "charge"))

    own, in_our_run, in_its_own = OUTER(attempt)()
    assert in_our_run == "RuntimeError"
    assert len({own, in_its_own}) == 2
    assert str(UUID(in_its_own)) == in_its_own

    async def main() -> str:
        async def task() -> str:
            return in_child(lambda: forbear.run_key("charge"))

        async def attempt() -> str:
            return await asyncio.create_task(task())

        return await OUTER.acall(attempt)

    assert asyncio.run(main()) == "RuntimeError"


def test_the_number_of_keys_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run has so many keys at most; the table forgets runs that have ended, and no others."""
    monkeypatch.setattr(keys, "_MOST", 3)
    with pytest.raises(RuntimeError, match="decorate the function that does the work on one item"):
        OUTER.call(lambda: [forbear.run_key("charge", number) for number in range(4)])

    run_keys.clear()  # no run is open here
    keys._swept[:] = [64]

    def outer() -> bool:
        own = forbear.run_key("outer")
        for _ in range(200):
            OUTER.call(in_thread_run)
        return forbear.run_key("outer") == own

    def in_thread_run() -> None:
        thread = threading.Thread(target=OUTER.call, args=(forbear.run_key, "x"))
        thread.start()
        thread.join()

    assert OUTER.call(outer)
    assert len(run_keys) <= 129


def choose(value: Any, _: object) -> Any:
    """Return the first argument."""
    return value


def key_of(order: "Order") -> Any:
    """Return the key of an order."""
    return order.payment["keys"][0]


async def in_itself(order: "Order") -> str:
    """Return the key of an order, too late."""
    return str(key_of(order))


class Order:
    """An order, whose key is one of its attributes' attributes."""

    def __init__(self, key: object) -> None:
        self.payment = {"keys": [key]}


def test_the_key_of_a_policy() -> None:
    """K8: `key` is called once for each run, before its first attempt, and its value is the same in all attempts."""
    calls = list[Order]()

    def count_and_return(order: Order) -> Any:
        calls.append(order)
        return key_of(order)

    def pay(wire: Wire, order: Order) -> object:
        return charge(wire, str(key_of(order)))

    for key in ("charge-4711", UUID(int=7), 10**12):
        for form in ("decorated", "called", "async"):
            with Wire(LOST, OK) as wire, virtual_time():
                keyed = policy(wire, key=count_and_return)

                def work(order: Order, wire: Wire = wire) -> object:
                    return pay(wire, order)

                async def awork(order: Order, wire: Wire = wire) -> object:
                    return pay(wire, order)

                if form == "async":
                    asyncio.run(keyed(awork)(Order(key)))
                elif form == "called":
                    keyed.call(work, Order(key))
                else:
                    keyed(work)(Order(key))
                assert (len(wire.seen), executed(wire), len(calls)) == (2, 1, 1)
            calls.clear()


def test_k8_a_key_that_each_attempt_changes() -> None:
    """K8: the value from before the first attempt counts; a key that an attempt puts in its place is new."""
    with Wire(LOST) as wire, virtual_time():

        def pay(order: Order) -> object:
            order.payment["keys"][0] = os.urandom(8).hex()
            return charge(wire, str(order.payment["keys"][0]))

        with pytest.raises(requests.ConnectionError) as caught:
            policy(wire, key=key_of).call(pay, Order("charge-4711"))
        assert len(wire.seen) == 1
        assert "a key that may be new in each attempt" in str(caught.value.__notes__)


def test_wrong_keys_of_a_policy() -> None:
    """A value that could be equal by chance is refused, and so is a policy with `key` where there are no arguments."""
    for wrong in (17, "short", None, ["charge-4711"]):
        with pytest.raises(TypeError, match="`key` must return a str, bytes or UUID of at least 8 characters"):
            forbear.retry(OSError, key=partial(choose, wrong)).call(len, "abc")
    keyed = forbear.retry(OSError, key=lambda: "charge-4711")
    with pytest.raises(TypeError, match="use run_key in it"):
        next(iter(keyed))
    with pytest.raises(TypeError, match="`policy` must have no key"):
        forbear.update(read=list, modify=list, write=list, conflict=callable, policy=keyed)
    with pytest.raises(TypeError, match="`key` must not be async"):
        forbear.retry(OSError, key=in_itself)  # type: ignore[arg-type]


def test_automatic_keys_of_nested_runs() -> None:
    """An inner run's next attempt sends its key again, and so does the outer one's; another inner run makes its own."""
    made: list[str] = []

    def send() -> None:
        made.append(keys.automatic_key("POST host", "request", 300).key)
        raise OSError

    def twice() -> None:
        for _ in range(2):
            with suppress(OSError):
                repeated.call(send)
        raise OSError

    repeated = forbear.retry(OSError, attempts=2, backoff=forbear.Constant(0), retry_exhausted=True)
    with virtual_time(), suppress(OSError):
        repeated.call(twice)
    first, first_again, other, other_again, *later = made
    assert (first, other) == (first_again, other_again)
    assert first != other
    assert later == [first, first, other, other]


def test_an_automatic_key_stays_in_doubt() -> None:
    """If a later attempt is refused, the request of the first one may have been executed all the same."""
    made: list[str] = []

    def send() -> None:
        use = keys.automatic_key("POST host", "request", 300)
        made.append(use.key)
        if len(made) == 2:
            use.take_back()
        raise OSError

    with virtual_time(), suppress(OSError):
        forbear.retry(OSError, attempts=3, backoff=forbear.Constant(0)).call(send)
    assert len(made) == 3
    assert len(set(made)) == 1


def test_a_run_with_a_declared_key_is_forgotten() -> None:
    """The key of a policy keeps no run: the table of keys does not grow with calls."""
    run_keys.clear()  # no run is open here
    keys._swept[:] = [64]
    keyed = forbear.retry(OSError, key=str)
    for number in range(200):
        keyed.call(str, f"charge-{number:04}")
    assert len(run_keys) <= 64


def test_a_run_with_keys_and_unknown_requests_is_forgotten() -> None:
    """A run that has used a key and left a request in doubt is known to nobody else either, once it has ended."""
    run_keys.clear()  # no run is open here
    keys._swept[:] = [64]

    def charge_in_doubt(number: int) -> bool:
        forbear.run_key("charge", number)
        leave_same_unknown(number)
        return was_left_unknown(number) and not was_left_unknown(number - 1)

    assert all(OUTER.call(charge_in_doubt, number) for number in range(200))
    assert len(run_keys) <= 64
