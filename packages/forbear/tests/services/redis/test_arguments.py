"""Every condition on arguments: commands that meet it, commands that do not, and what only looks like it."""

from typing import Any

import pytest

from forbear.services.redis import Promise, classify
from forbear.services.redis.arguments import OPTIONS, RULES
from forbear.services.redis.service import commands
from forbear_testkit.services.redis.samples import DIFFERS, IDEMPOTENT, LOST, PROMISED, REPEATABLE, lines

# A command a line; where a value is meant to be empty, it is written as ''.
MET = """
BITFIELD k
BITFIELD k SET u8 0 INCRBY
BITFIELD k OVERFLOW INCRBY GET u8 INCRBY
BITOP or d d k
BITOP DIFF1 d a b
BITOP NOT AND k
CLIENT KILL ID 5
CLIENT KILL TYPE normal SKIPME no ID 5
CLIENT KILL user NOT-ID id 5
CMS.MERGE d 2 a b
CMS.MERGE d 1 a WEIGHTS d
FT.ADD idx doc 1 REPLACE FIELDS f v
FT.ADD idx doc 1 NOSAVE replace PARTIAL LANGUAGE fields FIELDS f v
FT.ADDHASH idx doc 1 LANGUAGE en REPLACE
FT.SUGADD k INCR 1
FT.SUGADD k s 1 PAYLOAD INCR
GEORADIUS k 1 2 3 km COUNT 5 ANY ASC WITHDIST
GEORADIUS k 1 2 3 km STORE other
GEORADIUSBYMEMBER k STORE 3 km
GEOSEARCHSTORE d s FROMMEMBER d BYRADIUS 1 km
GETEX EX
GETEX k exat 5
HEXPIRE k 5 lt FIELDS 2 EX PX
HGETEX k FIELDS 1 EX
HGETEX k PERSIST FIELDS 2 EX PX
HPEXPIRE k 5 NX FIELDS 1 f
HSETEX k KEEPTTL FIELDS 1 FNX NX
HSETEX k XX fxx FIELDS 1 FNX NX
JSON.ARRTRIM k $.a 0 5
JSON.ARRTRIM k $.a -3 -1
JSON.DEL k
JSON.DEL k $.a.b
JSON.FORGET k $..a
JSON.MERGE k $.a [1]
JSON.SET k $ NX
JSON.CLEAR k
JSON.CLEAR k $.a
JSON.MSET a $ [1] b $.c [2]
JSON.SET k $.a [1] XX FPHA FP32
LTRIM k -1 -1
MIGRATE host 6379 COPY 0 5 COPY REPLACE
MIGRATE host 6379 '' 0 5 replace AUTH2 KEYS KEYS copy KEYS a b
MSETEX 2 NX 1 b NX
MSETEX 1 NX XX EX 5
SDIFFSTORE d d a
SET NX NX
SET k v xx ex 5
SORT k BY STORE GET STORE GET # LIMIT 0 STORE
SORT k BY w_* GET o_*->f STORE other
SORT k BY nosort STORE d
TDIGEST.MERGE d 2 a b OVERRIDE
TDIGEST.MERGE d 1 a COMPRESSION 100 override
TS.ADD k 100 1 ON_DUPLICATE last
TS.ADD k 100 1 RETENTION 5 IGNORE 1 2 ON_DUPLICATE BLOCK LABELS ON_DUPLICATE SUM
TS.READ k 100
TS.READ k - BLOCK 5 $
XADD k 1 f *
XADD k nomkstream MAXLEN ~ 10 LIMIT 5 1-2 f v
XADD k MINID 1 1-2 f v
XADD k IDMP producer * * f v
XADD k KEEPREF IDMPAUTO * MAXLEN = 5 * f v
XCLAIM k g c 0 1 2-0 IDLE 5 justid
XCLAIM k g c 0 1 RETRYCOUNT 0 FORCE LASTID 1
XGROUP SETID k g 0
XGROUP SETID k g 5-1 ENTRIESREAD 5
XNACK k g fail IDS 2 1 2
XNACK k g SILENT IDS 1 1-0 RETRYCOUNT 3 FORCE
XREAD STREAMS k 0
XREAD COUNT 1 BLOCK 5 STREAMS $ b 0 5-1
XREAD block 0 streams k +
ZADD k 1 INCR
ZADD INCR CH 1 NX
ZDIFFSTORE d 2 d b
ZINTERSTORE d 2 a b WEIGHTS 1 d
ZRANGESTORE d s 0 d
ZUNIONSTORE 1 1 2
"""

UNMET = """
BITFIELD k SET u8 0 1 incrby u8 0 1
BITFIELD k UNHEARD
BITFIELD k GET u8
BITOP XOR d a d
BITOP AND d
CLIENT KILL 127.0.0.1:5
CLIENT KILL ADDR ID
CLIENT KILL NOT-ID 5
CLIENT KILL ID
CLIENT KILL ID 5 UNHEARD 5
CLIENT KILL ID 5 ID 6
CMS.MERGE d 2 a d
CMS.MERGE d 3 a b
CMS.MERGE d 0 a
CMS.MERGE d x a
EXPIRE k 5 GT
EXPIRE NX LT
EXPIRE k 5 NX UNHEARD
FT.ADD idx REPLACE 1 FIELDS f REPLACE
FT.ADD idx doc 1 LANGUAGE REPLACE FIELDS f
FT.ADDHASH idx REPLACE 1
FT.SUGADD k s 1 incr
GEORADIUS k 1 2 3 km STORE k
GEORADIUS k 1 2 3 km storedist k
GEORADIUS k 1 2 3 km STORE
GEORADIUS k 1 2 3 km UNHEARD
GEORADIUSBYMEMBER k m 3 km STORE other STOREDIST k
GEOSEARCHSTORE s s FROMMEMBER d BYRADIUS 1 km
GETEX k ex 5
GETEX k UNHEARD
GETEX k EXAT
HEXPIRE k 5 FIELDS 2 NX LT
HEXPIRE k 5 NX f g h
HGETEX k PX 5 FIELDS 1 f
HGETEX k PERSIST f g h
HPEXPIRE k 5 XX FIELDS 1 f
HSETEX k fnx FIELDS 1 f v
HSETEX k NX FIELDS 1 f v
JSON.ARRTRIM k $.a 1 -1
JSON.DEL k $.a[0]
JSON.FORGET k $['a']
JSON.MERGE k $[0] null
JSON.ARRTRIM k $.a[0] 0 5
JSON.CLEAR k $.a[0]
JSON.MSET a $ 1 b $.c[1] 2
JSON.MSET a $ 1 b $.c
JSON.SET k $[0] 1
JSON.SET k $ 1 nx
JSON.SET k $ 1 UNHEARD
LREM k 00 v
LREM k -0 v
LREM k 0.0 v
LREM k 1_0 v
LTRIM k 0 x
LTRIM k -1 0
LTRIM k 1 -1
LTRIM k +0 5
MIGRATE host 6379 k 0 5 COPY
MIGRATE host 6379 k 0 5 COPY AUTH REPLACE
MIGRATE host 6379 COPY REPLACE 5 KEYS COPY REPLACE
MIGRATE host 6379 k 0 5 COPY REPLACE UNHEARD
MSETEX 1 k v NX
MSETEX 2 k v a b NX
MSETEX x k v
MSETEX -1 k v
SDIFFSTORE d a d
SET k v nX
SET k v EX 5 Get
SET k v EX
SET k v UNHEARD
SET k v XX XX
SET k v IFEQ XX
SET k
SORT k STORE k
SORT k LIMIT 0 5 store k
SORT k BY w_* STORE w_1
SORT k GET *->f STORE d
SORT k STORE
TDIGEST.MERGE d 2 a b
TDIGEST.MERGE d 2 a d OVERRIDE
TDIGEST.MERGE d 1 OVERRIDE
TS.ADD k * 1 ON_DUPLICATE LAST
TS.ADD k 100 1
TS.ADD k 100 1 ON_DUPLICATE SUM
TS.ADD k 100 1 on_duplicate sum
TS.ADD k 100 1 DUPLICATE_POLICY LAST
TS.ADD k 100 1 LABELS ON_DUPLICATE LAST
TS.ADD k 100 1 ON_DUPLICATE
TS.ADD k -5 1 ON_DUPLICATE LAST
TS.MADD k 100 1 k2 101 2
XADD k * f v
XADD k 5-* f v
XADD k NOMKSTREAM * f 1-1
XADD k IDMP producer f v
TS.READ k $ BLOCK 5 1
TS.READ k +
TS.READ k
XADD k IDMP a b 1-1x v
XADD k UNHEARD 1-1 f v
XADD k MAXLEN ~
XADD k - f v
XCLAIM k g JUSTID 0 1
XCLAIM k g c 0 1 LASTID JUSTID
XCLAIM k g c 0 JUSTID
XCLAIM k g c 0 1 JUSTID 2
XGROUP SETID k g $
XGROUP SETID k g
XNACK k g SILENT IDS 1 1
XNACK k g FATAL IDS 1 1
XNACK k FAIL SILENT IDS 2 1 2
XNACK k g UNHEARD IDS 1 1 RETRYCOUNT 1
XNACK k g FAIL IDS 2 1
XREAD STREAMS k $
XREAD BLOCK 0 STREAMS a b 5-1 $
XREAD COUNT 2 BLOCK 5 STREAMS a b + $
XREAD STREAMS k >
XREAD STREAMS k *
XREAD STREAMS k 5-*
XREAD STREAMS a b 0
XREAD COUNT STREAMS a 0
XREAD UNHEARD STREAMS a 0
ZADD k INCR 1 m
ZADD k nx incr 1 m
ZADD k NX GT LT CH
ZDIFFSTORE d 2 a d
ZINTERSTORE d 1 d
ZRANGESTORE k k 0 1
ZUNIONSTORE d 2 a d WEIGHTS 1 2
ZUNIONSTORE d 02 a b
"""


def _words(text: str) -> list[list[str]]:
    return [["" if word == "''" else word for word in command] for command in lines(text)]


@pytest.mark.parametrize("command", _words(MET), ids=" ".join)
def test_what_meets_a_condition_is_repeatable(command: list[str]) -> None:
    """With options in any case and place, with keys and values that are spelt like options, and as bytes."""
    judgement = classify(command)
    assert judgement.repeatable
    assert judgement.met in judgement.conditions
    assert classify([word.encode() for word in command]) == judgement
    numbers = [int(word) if word.isdigit() and not word.startswith("0") else word for word in command]
    assert classify(numbers) == judgement


@pytest.mark.parametrize("command", _words(UNMET), ids=" ".join)
def test_what_meets_none_is_not(command: list[str]) -> None:
    """Without the condition, with what only looks like it, and with what the server would refuse."""
    assert not classify(command).repeatable
    assert not classify([word.encode() for word in command]).repeatable


@pytest.mark.parametrize("command", _words(MET), ids=" ".join)
def test_options_are_told_from_values_in_any_case(command: list[str]) -> None:
    """Lower case means the same to the server, and so to the rules."""
    assert classify([word.lower() for word in command]).repeatable


@pytest.mark.parametrize(
    "command",
    [
        ["SET", "k", "v", True],
        ["ZADD", "k", None, "m"],
        ["ZUNIONSTORE", "d", 1, None],
        ["ZUNIONSTORE", "d", True, "a"],
        ["LREM", "k", False, "v"],
        ["XADD", "k", {}, "f", "v"],
        ["SDIFFSTORE", "d", "a", ["b"]],
    ],
    ids=repr,
)
def test_arguments_that_no_client_sends_make_nothing_safe(command: Any) -> None:
    """A truth value, None or an object where a rule has to look leaves all in doubt."""
    assert not classify(command).repeatable


@pytest.mark.parametrize(
    ("line", "promise"),
    [
        ("SET k v NX", "unique"),
        ("SET k v IFEQ old PX 5", "unique"),
        ("SET k v nx ex 5", "unique"),
        ("HSETEX k FNX FIELDS 1 f v", "unique"),
        ("MSETEX 1 k v NX", "unique"),
        ("JSON.SET k $ 1 NX", "unique"),
        ("EXPIRE k 5", "drift"),
        ("GETEX k EX 5", "drift"),
        ("HGETEX k PX 5 FIELDS 1 f", "drift"),
        ("JSON.SET k $.a 1 NX", "unique"),
        ("RENAME a b", "idempotent"),
        ("RENAMENX a b", "idempotent"),
        ("MOVE a 1", "idempotent"),
        ("LSET l 0 v", "idempotent"),
        ("XREADGROUP GROUP g c STREAMS k 0", "idempotent"),
        ("XREADGROUP group STREAMS > COUNT 1 BLOCK 5 NOACK STREAMS > b 0 5-1", "idempotent"),
        ("TS.ADD k 100 1", "idempotent"),
        ("TS.MADD k 100 1 k2 101 2", "idempotent"),
    ],
)
def test_a_promise_completes_what_arguments_leave_open(line: str, promise: Promise) -> None:
    """Not without it, and not with another."""
    command = line.split(" ")
    assert classify(command, promised={promise}).repeatable
    assert not classify(command, promised={"cycle"}).repeatable


@pytest.mark.parametrize(
    "line",
    [
        "SET k v GET",
        "SET k v NX GET",
        "JSON.SET k $.a[0] 1 NX",
        "TS.ADD k * 1",
        "TS.MADD k 100 1 k2 * 2",
        "TS.MADD k",
        "XREADGROUP GROUP g c STREAMS k >",
        "XREADGROUP GROUP g c STREAMS a b 0 >",
        "XREADGROUP GROUP g c STREAMS a b 0",
        "XREADGROUP GROUP g c STREAMS",
        "XREADGROUP GROUP g c CLAIM 5 STREAMS a 0",
        "XREADGROUP GROUP g c COUNT STREAMS a 0",
        "XREADGROUP x g c COUNT 1 STREAMS a 0",
    ],
)
def test_no_promise_helps_against_arguments(line: str) -> None:
    """A value that is lost, a position or time that is taken anew, an argument that is missing."""
    assert not classify(line.split(" "), promised={"unique", "idempotent", "drift", "cycle"}).repeatable


def test_every_rule_is_tried_both_ways() -> None:
    """A rule without an example that meets it, or without one that does not, is an untested one."""
    samples = _words(MET) + lines(REPEATABLE)
    met = {(found.operation, found.met) for found in map(classify, samples)}
    for row in commands():
        for terms, text in zip(row.conditions, classify(row.command.split(" ")).conditions, strict=True):
            if all(prefix == "arg" for prefix, _ in terms):
                assert (row.command, text) in met
    refused = _words(UNMET) + lines(DIFFERS) + lines(IDEMPOTENT) + lines(PROMISED) + lines(LOST)
    unmet = {found.operation for found in map(classify, refused) if not found.repeatable}
    assert set(RULES) <= unmet | {"HPEXPIRE"}


def test_an_option_is_known_by_name() -> None:
    """The names are what the server's own list is compared with."""
    assert OPTIONS["ZADD"].names == {"NX", "XX", "GT", "LT", "CH", "INCR"}
