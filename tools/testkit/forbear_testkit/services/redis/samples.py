"""Write commands for a live server, and the keys they find: what is repeatable, what is not, and what each leaves."""

SETUP = """
SET s 10
SET t other
SET u 5 EX 100000
SET bits abc
SET bits2 xyz
HSET h f 1 g 2 n 7
RPUSH l a b c a b c
RPUSH l2 x y z
SADD st a b c
SADD st2 b c d
SADD nums 3 1 2
SET w_1 9
SET w_2 8
SET w_3 7
ZADD z 1 a 2 b 3 c
ZADD z2 10 b 20 c 30 d
PFADD hl a b c
PFADD hl2 c d e
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
XADD x 1-1 f v
XADD x 2-1 f v
XADD x 3-1 f v
XADD x 4-1 f v
XGROUP CREATE x g 0
XREADGROUP GROUP g me COUNT 2 STREAMS x >
"""
"""The keys before each command."""

REPEATABLE = """
SET s new
SET s new XX
SET s new KEEPTTL
SET s new EXAT 4102444800
SET s new PXAT 4102444800000
SET fresh new
SET s NX
SETEX s 100 new
PSETEX s 100000 new
MSET s 1 t 2 fresh 3
MSETEX 2 s 1 t 2
MSETEX 1 s NX XX
SETRANGE s 1 xx
SETBIT bits 3 1
BITFIELD bits SET u8 0 200 GET u8 8
BITFIELD bits OVERFLOW SAT SET u4 #1 7
BITOP AND bits bits bits2
BITOP OR bits bits bits2
BITOP XOR fresh bits bits2
BITOP NOT fresh bits
GETEX s
GETEX s PERSIST
GETEX s EXAT 4102444800
EXPIRE s 100 NX
EXPIRE u 100 LT
EXPIRE s 100 XX LT
PEXPIRE s 100000 nx
PEXPIRE u 1000 LT
EXPIREAT s 4102444800
PEXPIREAT s 4102444800000
PERSIST u
DEL s
DEL s t missing
UNLINK l
COPY s t
COPY s t REPLACE
COPY s fresh
HSET h f new
HSET h fresh new
HMSET h f new g other
HDEL h f
HSETEX h FIELDS 1 f new
HSETEX h FXX EXAT 4102444800 FIELDS 1 f new
HGETEX h FIELDS 1 f
HGETEX h PERSIST FIELDS 1 f
HEXPIRE h 100 NX FIELDS 1 f
HEXPIRE h 100 LT FIELDS 1 f
HPEXPIRE h 100000 NX FIELDS 1 f
HEXPIREAT h 4102444800 FIELDS 1 f
HPEXPIREAT h 4102444800000 FIELDS 1 f
HPERSIST h FIELDS 1 f
LREM l 0 a
LTRIM l 0 1
LTRIM l -2 -1
LTRIM l 0 -1
SADD st a new
SREM st a
SMOVE st st2 a
SDIFFSTORE fresh st st2
SDIFFSTORE st st st2
SINTERSTORE st st st2
SUNIONSTORE st st st2
SUNIONSTORE fresh st st2
SORT nums STORE fresh
SORT nums BY w_* GET w_* STORE fresh
SORT nums
SORT nums LIMIT 0 2 DESC
ZADD z 5 a 6 new
ZADD z NX 5 a 6 new
ZADD z XX GT CH 5 a
ZADD z LT 0 a
ZREM z a
ZREMRANGEBYSCORE z 1 2
ZREMRANGEBYLEX z [a [b
ZRANGESTORE fresh z 0 1
ZUNIONSTORE fresh 2 z z2
ZINTERSTORE fresh 2 z z2
ZDIFFSTORE fresh 2 z z2
ZDIFFSTORE z 2 z z2
GEOADD geo 13.5 38.2 Palermo
GEOADD geo CH 13.5 38.2 Roma
GEOSEARCHSTORE fresh geo FROMLONLAT 15 37 BYRADIUS 500 km
GEORADIUS geo 15 37 500 km
GEORADIUS geo 15 37 500 km STORE fresh
GEORADIUSBYMEMBER geo Palermo 500 km STOREDIST fresh
PFADD hl z
PFMERGE hl hl2
PFMERGE fresh hl hl2
XADD x 9-1 f v
XADD x NOMKSTREAM MAXLEN = 2 9-1 f v
XADD fresh 9 f v
XDEL x 1-1
XACK x g 1-1
XTRIM x MAXLEN 1
XTRIM x MINID 2
XSETID x 7-0
XGROUP CREATE x g2 $
XGROUP CREATE fresh g2 0 MKSTREAM
XGROUP SETID x g 0
XGROUP CREATECONSUMER x g other
XGROUP DELCONSUMER x g me
XGROUP DESTROY x g
XCLAIM x g other 0 1-1 JUSTID
XCLAIM x g other 0 1-1 RETRYCOUNT 5
"""
"""Commands that the table calls repeatable as they stand here: once or twice, the same is left."""

PROMISED = """
SETNX fresh v
SETNX s v
MSETNX fresh 1 fresh2 2
HSETNX h fresh v
SET fresh v NX
SET s new IFEQ 10
SET s new NX
HSETEX h FNX FIELDS 1 fresh v
MSETEX 1 fresh v NX
DELIFEQ s 10
"""
"""Commands that are repeatable if the caller promises that the value is unique or the response is of no interest."""

DIFFERS = """
APPEND s x
INCR s
INCRBY s 2
INCRBYFLOAT s 0.5
DECR s
DECRBY s 2
BITFIELD bits INCRBY u8 0 1
BITFIELD bits GET u8 0 incrby u8 0 1
BITOP XOR bits bits bits2
BITOP NOT bits bits
HINCRBY h f 1
HINCRBYFLOAT h f 0.5
LINSERT l BEFORE a new
LMOVE l l2 LEFT RIGHT
LMOVE l l LEFT RIGHT
BLMOVE l l2 LEFT RIGHT 1
LMPOP 1 l LEFT
BLMPOP 1 1 l LEFT
LPOP l
RPOP l
BLPOP l 1
BRPOP l 1
LPUSH l new
LPUSHX l new
RPUSH l new
RPUSHX l new
RPOPLPUSH l l
BRPOPLPUSH l l 1
LREM l 1 a
LREM l -1 a
LTRIM l 1 -1
LTRIM l 0 -2
LTRIM l 1 3
SPOP st
SDIFFSTORE st2 st st2
ZADD z INCR 1 a
ZADD z XX CH incr 1 a
ZINCRBY z 1 a
ZMPOP 1 z MIN
BZMPOP 1 1 z MIN
ZPOPMIN z
ZPOPMAX z
BZPOPMIN z 1
BZPOPMAX z 1
ZREMRANGEBYRANK z 0 0
ZUNIONSTORE z 2 z z2
ZDIFFSTORE z2 2 z z2
ZRANGESTORE z z 1 -1
XADD x * f v
XADD x 9-* f v
XREADGROUP GROUP g me COUNT 1 STREAMS x >
XREADGROUP GROUP g me STREAMS x 0
XCLAIM x g other 0 1-1
XAUTOCLAIM x g other 0 0 COUNT 1
EXPIRE s 100
EXPIRE u 200000 GT
PEXPIRE u 200000000 GT
PEXPIRE u 200000000 XX
HEXPIRE h 100 FIELDS 1 f
HPEXPIRE h 100000 FIELDS 1 f
GETEX s PX 100000
GETEX s EX 100
HGETEX h PX 100000 FIELDS 1 f
SWAPDB 0 1
"""
"""Commands that the table does not call repeatable as they stand, and that leave something else the second time."""

LOST = """
GETSET s new
GETDEL s
HGETDEL h FIELDS 1 f
SET s new GET
"""
"""Unsafe only because the response to the first one is lost: the second gets another one."""

IDEMPOTENT = """
RENAME s t
RENAME s fresh
RENAMENX s fresh
MOVE s 1
LSET l 0 new
LSET l -1 new
XREADGROUP GROUP g me STREAMS x 99
"""
"""Commands that leave the same twice as once, unless others write in between: the caller must promise "idempotent"."""

OVERTAKEN = """
SET s new -- SET s newer
DEL s -- SET s newer
UNLINK l -- DEL l; RPUSH l next
HDEL h f -- HSET h f newer
COPY s t -- SET s newer
COPY s t REPLACE -- SET s newer
COPY s fresh -- DEL fresh; SET s newer
SMOVE st st2 a -- SREM st2 a; SADD st a
SINTERSTORE fresh st st2 -- SADD st2 a
SDIFFSTORE fresh st st2 -- SADD st2 a
SUNIONSTORE st st st2 -- SADD st2 new
SORT nums STORE fresh -- SADD nums 9
ZUNIONSTORE fresh 2 z z2 -- ZADD z 9 new
GEOSEARCHSTORE fresh geo FROMLONLAT 15 37 BYRADIUS 500 km -- ZREM geo Catania
BITOP XOR fresh bits bits2 -- SETBIT bits 0 1
BITOP AND bits bits bits2 -- SETBIT bits2 0 1
PFMERGE hl hl2 -- PFADD hl2 z
LTRIM l 0 1 -- LPUSH l new
LREM l 0 a -- RPUSH l a
XCLAIM x g other 0 1-1 JUSTID -- XCLAIM x g me 0 1-1 JUSTID
RENAME l fresh -- RPUSH l next
RENAME l l2 -- RPUSH l next
RENAMENX l fresh -- DEL fresh; RPUSH l next
MOVE l 1 -- SELECT 1; DEL l; SELECT 0; RPUSH l next
LSET l 0 new -- LPUSH l next
LSET l -1 new -- RPUSH l next
LMOVE l l2 LEFT RIGHT -- RPUSH l next
RPOPLPUSH l l2 -- RPUSH l next
LPOP l -- RPUSH l next
"""
"""A command, and what others write before it is sent again. What is repeatable leaves what one execution would leave.

That is one execution, before or after the others.
"""

MEANWHILE = """
FLUSHDB -- SET other 1
FLUSHALL -- SET other 1
XGROUP SETID x g $ -- XADD x 5-1 f v
SETRANGE s 0 x -- APPEND t y
"""
"""Harm that shows only if somebody else writes between the two: the command, and what the other one does.

The last one is harmless, which shows that the test can tell.
"""

UNTRIED = {
    "FUNCTION DELETE": "libraries are not keys",
    "FUNCTION FLUSH": "libraries are not keys",
    "FUNCTION LOAD": "libraries are not keys",
    "FUNCTION RESTORE": "libraries are not keys",
    "CLUSTER FLUSHSLOT": "needs a cluster",
    "MIGRATE": "needs a second server",
    "PFDEBUG": "for debugging",
    "RESTORE-ASKING": "between servers",
    "RESTORE": "its argument is binary: tried by itself",
}
"""Writes of which no sample is tried, and why."""


def lines(text: str) -> list[list[str]]:
    """The commands in a text, one a line."""
    return [line.split(" ") for line in text.strip().splitlines()]
