"""The proof, on a real server: what the table calls repeatable leaves the same twice as once, and nothing else does."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.exceptions import ResponseError

from forbear.services.redis import Promise, classify, classify_many
from forbear_testkit.services.redis.samples import (
    DIFFERS,
    IDEMPOTENT,
    LOST,
    MEANWHILE,
    OVERTAKEN,
    PROMISED,
    REPEATABLE,
    SETUP,
    UNTRIED,
    lines,
)  # fmt: skip
from forbear_testkit.services.redis.server import Live, State, same_but_for_time

_FRESH = [["FLUSHALL"], *lines(SETUP)]
_RESTARTS = {"SETEX", "PSETEX"}  # their time to live starts anew, which the table allows
_SAMPLES = [*map(lines, (REPEATABLE, PROMISED, IDEMPOTENT, DIFFERS, LOST))]


def _once_and_twice(live: Live, *commands: list[str]) -> tuple[State, State]:
    """Return what commands leave that are sent together, and what they leave if they are sent again."""
    replies = live.run([*_FRESH, *commands])
    assert not [reply for reply in replies[: len(_FRESH)] if isinstance(reply, ResponseError)]
    once = live.state()
    live.tick()
    live.run(commands)
    return once, live.state()


@pytest.mark.parametrize("command", lines(REPEATABLE), ids=" ".join)
def test_what_is_repeatable_leaves_the_same_twice_as_once(live: Live, command: list[str]) -> None:
    """The state after the second time is the one after the first, to the last field and millisecond."""
    assert classify(command).repeatable
    once, twice = _once_and_twice(live, command)
    assert same_but_for_time(once, twice) if command[0] in _RESTARTS else once == twice


@pytest.mark.parametrize(
    ("command", "promise"),
    [
        (command, promise)
        for samples, promise in ((PROMISED, "unique"), (IDEMPOTENT, "idempotent"))
        for command in lines(samples)
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_is_repeatable_by_promise_leaves_the_same_too(live: Live, command: list[str], promise: Promise) -> None:
    """The caller promises that no response and no write of others makes the repeat harmful."""
    assert not classify(command).repeatable
    assert classify(command, promised={promise}).repeatable
    once, twice = _once_and_twice(live, command)
    assert once == twice


@pytest.mark.parametrize("command", lines(DIFFERS), ids=" ".join)
def test_what_is_not_repeatable_leaves_something_else(live: Live, command: list[str]) -> None:
    """The second time does harm, so the table must not allow it."""
    assert not classify(command).repeatable
    once, twice = _once_and_twice(live, command)
    assert once != twice


@pytest.mark.parametrize("command", lines(LOST), ids=" ".join)
def test_a_value_in_a_lost_response_does_not_come_back(live: Live, command: list[str]) -> None:
    """The state converges, but the value is in no second response."""
    assert not classify(command, promised={"unique"}).repeatable
    live.run(_FRESH)
    assert live(*command) != live(*command)


@pytest.mark.parametrize("text", MEANWHILE.strip().splitlines())
def test_what_harms_others_shows_when_they_write_in_between(live: Live, text: str) -> None:
    """A value written by others between the two is there after the second, unless the table forbids the repeat."""
    command, other = (part.split(" ") for part in text.split(" -- "))
    live.run([*_FRESH, command, other])
    before = live.state()
    live(*command)
    assert (live.state() == before) is classify(command).repeatable


@pytest.mark.parametrize("text", OVERTAKEN.strip().splitlines())
def test_what_others_write_in_between_is_as_before_or_after_one_execution(live: Live, text: str) -> None:
    """A repeatable command leaves what it leaves alone, sent before or after the others; RENAME and its like do not."""
    command, _, others = text.partition(" -- ")
    mine, between = [command.split(" ")], lines(others.replace("; ", "\n"))
    (twice, *once) = (
        _left_by(live, commands) for commands in ([*mine, *between, *mine], [*mine, *between], [*between, *mine])
    )
    assert (twice in once) is classify(*mine).repeatable


def _left_by(live: Live, commands: list[list[str]]) -> list[State]:
    """Run commands on a fresh server, and return what they leave in its first two databases."""
    live.run([*_FRESH, ["PERSIST", "u"], *commands])
    states = []
    for database in (1, 0):
        live("SELECT", database)
        states.append(live.state())
    return states


def test_a_message_is_delivered_twice(live: Live, socket_path: str) -> None:
    """PUBLISH leaves nothing in the database, but its subscribers get two messages."""
    subscriber = Live(socket_path)
    subscriber("SUBSCRIBE", "channel")
    live.run([["PUBLISH", "channel", "m"], ["PUBLISH", "channel", "m"]])
    message = [b"message", b"channel", b"m"]
    assert subscriber.receive(2) == [message, message]
    assert not classify(["PUBLISH", "channel", "m"]).repeatable
    subscriber.close()


def test_reading_pending_entries_again_counts_a_delivery_and_no_more(live: Live) -> None:
    """The server counts how often it delivers an entry, so reading pending entries again needs a promise."""
    again = ["XREADGROUP", "GROUP", "g", "me", "STREAMS", "x", "0"]
    assert not classify(again).repeatable
    assert classify(again, promised={"idempotent"}).repeatable
    live.run(_FRESH)
    first, second = live(*again), live(*again)
    assert first == second
    pending = live("XPENDING", "x", "g", "-", "+", 10)
    assert [(entry[0], entry[3]) for entry in pending] == [(b"1-1", 3), (b"2-1", 3)]


def test_restore_and_functions_come_out_the_same(live: Live) -> None:
    """Writes that take binary arguments or touch no keys: the repeat changes nothing or is refused."""
    live.run(_FRESH)
    dump = live("DUMP", "h")
    library = "#!lua name=lib\nserver.register_function('f', function() return 1 end)"
    live("FUNCTION", "LOAD", library)
    functions = live("FUNCTION", "DUMP")
    for command in (
        ["RESTORE", "h", 0, dump, "REPLACE"],
        ["RESTORE", "copy", 0, dump],
        ["FUNCTION", "LOAD", "REPLACE", library],
        ["FUNCTION", "LOAD", library],
        ["FUNCTION", "RESTORE", functions, "REPLACE"],
        ["FUNCTION", "RESTORE", functions],
        ["FUNCTION", "DELETE", "lib"],
    ):
        assert classify(command).repeatable
        live(*command)
        once = (live.state(), live("FUNCTION", "DUMP"))
        live(*command)
        assert (live.state(), live("FUNCTION", "DUMP")) == once


def test_every_write_of_the_server_is_tried(live: Live) -> None:
    """A write that a newer server adds needs a sample here, or a reason why not."""
    tried = {classify(command).operation for samples in _SAMPLES for command in samples}
    tried |= {classify(line.split(" ")).operation for line in MEANWHILE.strip().splitlines()}
    writes = {name for name, (_, flags) in live.commands().items() if "write" in flags}
    assert writes - tried == set(UNTRIED)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["RENAME", "s", "fresh"], "no such key"),
        (["RENAMENX", "s", "fresh"], "no such key"),
        (["XADD", "x", "9-1", "f", "v"], "equal or smaller"),
        (["XGROUP", "CREATE", "x", "g2", "0"], "busygroup"),
    ],
    ids=["RENAME", "RENAMENX", "XADD", "XGROUP CREATE"],
)
def test_the_errors_that_mean_success_are_the_server_s_own(live: Live, command: list[str], error: str) -> None:
    """The server refuses the second attempt with the errors that the table lists for it."""
    live.run([*_FRESH, command])
    judgement = classify(command)
    assert judgement.errors == (error,)
    refusal = live(*command)
    assert isinstance(refusal, ResponseError)
    assert judgement.is_maybe_done(str(refusal))
    assert not judgement.is_maybe_done("WRONGTYPE Operation against a key holding the wrong kind of value")


def test_the_errors_of_restore_and_functions_mean_success_too(live: Live) -> None:
    """The same for commands whose arguments come from the server."""
    live.run(_FRESH)
    library = "#!lua name=lib\nserver.register_function('f', function() return 1 end)"
    for command in (
        ["RESTORE", "copy", 0, live("DUMP", "s")],
        ["FUNCTION", "LOAD", library],
        ["FUNCTION", "DELETE", "lib"],
    ):
        assert not isinstance(live(*command), ResponseError)
        assert classify(command).is_maybe_done(str(live(*command)))
    live("FUNCTION", "LOAD", library)
    again = ["FUNCTION", "RESTORE", live("FUNCTION", "DUMP")]
    assert classify(again).is_maybe_done(str(live(*again)))


@pytest.mark.soak
def test_pairs_that_are_repeatable_together_leave_the_same_twice_as_once(live: Live) -> None:
    """Of all pairs of samples that share a word, those that may be sent again together do no harm; many may not."""
    samples = [command for command in lines(REPEATABLE) if classify(command).mutation]
    pairs = [(one, two) for one in samples for two in samples if set(one[1:]) & set(two[1:])]
    together = [pair for pair in pairs if all(judgement.repeatable for judgement in classify_many(pair))]
    assert len(pairs) > 2 * len(together) > 1000
    for one, two in together:
        live.run([*_FRESH, one, two])
        once = live.state()
        live.run([one, two])
        assert same_but_for_time(once, live.state()), (one, two)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(st.sampled_from(lines(REPEATABLE)), min_size=2, max_size=5))
def test_batches_that_are_repeatable_leave_the_same_twice_as_once(live: Live, batch: list[list[str]]) -> None:
    """The same for whole pipelines, and for the same commands in a transaction."""
    safe = all(judgement.repeatable for judgement in classify_many(batch))
    block = [["MULTI"], *batch, ["EXEC"]]
    assert all(judgement.repeatable for judgement in classify_many(block)) is safe
    if safe:
        for commands in (batch, block):
            live.run([*_FRESH, *commands])
            once = live.state()
            live.run(commands)
            assert same_but_for_time(once, live.state())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batch=st.lists(st.sampled_from(lines(REPEATABLE)), min_size=2, max_size=5))
def test_pipelines_that_are_repeatable_may_break_off_anywhere(live: Live, batch: list[list[str]]) -> None:
    """Sent again after any part of it was executed, a pipeline leaves what it leaves when sent once."""
    if not all(judgement.repeatable for judgement in classify_many(batch)):
        return
    live.run([*_FRESH, *batch])
    once = live.state()
    for length in range(1, len(batch)):
        live.run([*_FRESH, *batch[:length], *batch])
        assert same_but_for_time(once, live.state()), length
