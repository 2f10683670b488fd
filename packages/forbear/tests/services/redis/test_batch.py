"""Commands that are sent together: each by itself and against the others, transactions as one."""

import pytest

from forbear.core.verdict import Safety
from forbear.services.redis import Promise, classify, classify_many, classify_transaction
from forbear_testkit.services.redis.samples import lines

_ENTANGLED = "its outcome depends on what another command sent with it changes"


def _repeatable(text: str) -> list[bool]:
    return [judgement.repeatable for judgement in classify_many(lines(text.replace("; ", "\n")))]


@pytest.mark.parametrize(
    "text",
    [
        "GET a; MGET a b; HGETALL h",
        "SET a 1; SET a 2; HSET h f 1; DEL a b; SADD s x; SREM s x; ZADD z 1 m",
        "COPY a b; COPY c d; GET b",
        "LTRIM l 0 9",
        "LTRIM l 0 9; LTRIM k 0 9; LRANGE l 0 9",
        "HSET h f v; EXPIREAT h 4102444800",
        "HSET h f v; EXPIREAT h 4102444800; EXPIREAT k 4102444800; SET other 1",
        "SORT l STORE d; GET a",
        "SELECT 1; SET a 1; PING",
        "SET a XX; SET b 1",
        "SET a 1 XX; SET b 2",
        "XADD s 1-1 f v; XADD s 1-2 f v; XDEL s 1-1",
        "SCRIPT LOAD x; SET a 1",
        "SET a 1; EXPIRE a 60",
        "SET a 1; SET b 2 EX 9; EXPIRE a 60; PEXPIRE b 1000",
    ],
)
def test_what_may_be_repeated_together(text: str) -> None:
    """Reads, writes of given values, and writes that depend only on keys that no other one touches."""
    assert all(_repeatable(text))
    assert all(_repeatable(f"MULTI; {text}; EXEC"))


@pytest.mark.parametrize(
    ("text", "entangled"),
    [
        ("COPY a b REPLACE; SET a 1", [0]),
        ("SET a 1; COPY a b", [1]),
        ("COPY a b REPLACE; COPY b c", [0, 1]),
        ("LTRIM l 0 1; LREM l 0 x", [0, 1]),
        ("EXPIREAT h 4102444800; HSET h f v", [0]),
        ("XDEL s 9-1; XADD s 9-1 f v", [0]),
        ("XADD s NOMKSTREAM 9-2 f v; XADD s 9-1 f v", [0]),
        ("SET a 1 XX; SETBIT a 3 1", [0]),
        ("ZADD z NX 5 a; ZREMRANGEBYSCORE z 1 2", [0]),
        ("SORT l STORE d; SET other 1", [0]),
        ("SINTERSTORE d a b; GET a; SADD a x", [0]),
        ("XGROUP CREATE s g 0; XADD s 1-1 f v", [0]),
        ("FUNCTION DELETE f; SET a 1", [0]),
    ],
)
def test_what_depends_on_the_others_is_refused(text: str, entangled: list[int]) -> None:
    """Each of them may be repeated alone; sent again together, they would leave something else."""
    commands = lines(text.replace("; ", "\n"))
    assert all(classify(command).repeatable for command in commands)
    judged = classify_many(commands)
    assert [index for index, judgement in enumerate(judged) if judgement.refused == _ENTANGLED] == entangled
    for index, judgement in enumerate(judged):
        assert judgement.repeatable is (index not in entangled)
        assert judgement.repeatable or judgement.met is None
    assert not any(_repeatable(f"MULTI; {text}; EXEC"))
    assert not classify_transaction(commands).repeatable


def test_judgements_come_in_the_order_of_the_commands() -> None:
    """A pipeline is judged command by command."""
    assert _repeatable("SET a 1; INCR b; GET c; UNHEARD d") == [True, False, True, False]
    assert classify_many([]) == ()
    assert classify_many([["GET", "a"]]) == (classify(["GET", "a"]),)


def test_a_transaction_stands_and_falls_as_one() -> None:
    """From MULTI, or from WATCH before it, to EXEC; what is outside is judged by itself."""
    assert _repeatable("INCR x; MULTI; SET a 1; GET b; EXEC; GET c") == [False, True, True, True, True, True]
    assert _repeatable("GET x; MULTI; SET a 1; INCR b; EXEC; SET c 1") == [True, False, False, False, False, True]
    assert _repeatable("WATCH a; GET a; MULTI; SET a 1; EXEC; GET c") == [True] * 6
    assert _repeatable("WATCH a; WATCH b; GET a; MULTI; INCR a; EXEC; GET c") == [False] * 6 + [True]
    assert _repeatable("MULTI; SET a 1; EXEC; MULTI; INCR a; EXEC") == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EXEC", [False]),
        ("SET a 1; EXEC", [True, False]),
        ("MULTI; SET a 1", [False, True]),
        ("MULTI; SET a 1; DISCARD", [False, True, False]),
        ("MULTI; SET a 1; DISCARD; EXEC", [False, True, False, False]),
        ("WATCH a; UNWATCH; EXEC", [False, True, False]),
        ("WATCH a; EXEC", [False, False]),
        ("MULTI; MULTI; SET a 1; EXEC", [False] * 4),
        ("MULTI; UNWATCH; SET a 1; EXEC", [True] * 4),
    ],
)
def test_half_a_transaction_is_none(text: str, expected: list[bool]) -> None:
    """Without its other half each part is judged by itself, and MULTI, EXEC and WATCH alone are not repeatable."""
    assert _repeatable(text) == expected


def test_a_queue_is_judged_as_the_transaction_it_becomes() -> None:
    """A client that keeps the commands until EXEC asks about them as one."""
    safe = classify_transaction([["SET", "a", 1], ["GET", "b"]])
    assert (safe.operation, safe.safety, safe.repeatable) == ("EXEC", Safety.CONDITIONAL, True)
    assert safe.met == "every queued command is repeatable"
    assert safe.met in safe.conditions
    assert safe.response == "lost"
    for unsafe in (
        classify_transaction([["SET", "a", 1], ["INCR", "b"]]),
        classify_transaction([["SET", "a", 1]], watched=True),
    ):
        assert not unsafe.repeatable
        assert unsafe.met is None
        assert unsafe.conditions == safe.conditions
    assert classify_transaction([]).repeatable


def test_who_repeats_the_whole_cycle_may_say_so() -> None:
    """The promise covers WATCH, whatever is queued, and EXEC."""
    promised: set[Promise] = {"cycle"}
    assert classify_transaction([["INCR", "a"]], watched=True, promised=promised).repeatable
    commands = lines("WATCH a\nGET a\nMULTI\nINCR a\nEXEC")
    assert all(judgement.repeatable for judgement in classify_many(commands, promised=promised))
    assert not any(judgement.repeatable for judgement in classify_many(commands))


def test_words_that_no_client_sends_are_no_keys() -> None:
    """They are refused by the client; here they only must not raise."""
    judged = classify_many([["COPY", "a", None], ["SET", None, "a"], ["COPY", "b", True]])  # type: ignore[list-item]
    assert [judgement.repeatable for judgement in judged] == [False, True, True]


def test_keys_are_compared_as_they_go_over_the_wire() -> None:
    """The same key as text, as bytes of any kind and as a number."""
    for key in ("k", b"k", bytearray(b"k"), memoryview(b"k")):
        assert not classify(["ZUNIONSTORE", "k", 1, key]).repeatable
    assert not all(judgement.repeatable for judgement in classify_many([["COPY", 1, "b"], [b"SET", b"1", b"x"]]))
    assert not all(judgement.repeatable for judgement in classify_many([["LTRIM", "k", 0, 1], ["LSET", b"k", 0, 1]]))
