"""The conditions on arguments in the table of commands, each as a rule: a function that reads a command.

A rule returns True if the command meets the condition. It gets only commands with at least the words in `LEAST`. It may
raise LookupError, TypeError or ValueError for arguments that the server would refuse; the condition is then not met. An
unknown word is such a case, because a newer server may give it any meaning.
"""

from collections.abc import Callable, Mapping

from forbear.services.redis.command_words import (
    Argument,
    Command,
    Options,
    OptionValues,
    integer,
    is_id,
    keyword,
    octets,
)

Rule = Callable[[Command], bool]
Read = Callable[[Command], OptionValues]

_EXPIRY = "EX=1 PX=1 EXAT=1 PXAT=1"

# The positions of each command's options, by name, so that tests can compare them with a server's own list.
OPTIONS: Mapping[str, Options] = {
    "BITFIELD": Options("GET=2+ SET=3+ INCRBY=3+ OVERFLOW=1+"),
    "CLIENT KILL": Options(
        "ID=1 TYPE=1 USER=1 ADDR=1 LADDR=1 SKIPME=1 MAXAGE=1 NAME=1 IDLE=1 FLAGS=1 LIB-NAME=1 LIB-VER=1 DB=1 CAPA=1 "
        "IP=1 NOT-ID=1 NOT-TYPE=1 NOT-USER=1 NOT-ADDR=1 NOT-LADDR=1 NOT-NAME=1 NOT-FLAGS=1 NOT-LIB-NAME=1 "
        "NOT-LIB-VER=1 NOT-DB=1 NOT-CAPA=1 NOT-IP=1"
    ),
    "EXPIRE": Options("NX XX GT LT"),
    "FT.ADD": Options("NOSAVE REPLACE PARTIAL NOCREATE LANGUAGE=1 PAYLOAD=1 IF=1"),
    "FT.ADDHASH": Options("REPLACE LANGUAGE=1"),
    "FT.SUGADD": Options("INCR PAYLOAD=1"),
    "GEORADIUS": Options("WITHCOORD WITHDIST WITHHASH COUNT=1 ANY ASC DESC STORE=1 STOREDIST=1"),
    "GETEX": Options(f"PERSIST {_EXPIRY}"),
    "HSETEX": Options(f"NX XX FNX FXX KEEPTTL {_EXPIRY}"),
    "JSON.SET": Options("NX XX FPHA=1"),
    "MIGRATE": Options("COPY REPLACE AUTH=1 AUTH2=2"),
    "MSETEX": Options(f"NX XX KEEPTTL {_EXPIRY}"),
    "SET": Options(f"NX XX GET KEEPTTL IFEQ=1 IFNE=1 IFDEQ=1 IFDNE=1 {_EXPIRY}"),
    "SORT": Options("BY=1 LIMIT=2 GET=1+ ASC DESC ALPHA STORE=1"),
    "TDIGEST.MERGE": Options("COMPRESSION=1 OVERRIDE"),
    "TS.ADD": Options("RETENTION=1 ENCODING=1 CHUNK_SIZE=1 DUPLICATE_POLICY=1 ON_DUPLICATE=1 IGNORE=2 UNCOMPRESSED"),
    "XADD": Options("NOMKSTREAM KEEPREF DELREF ACKED IDMP=2 IDMPAUTO=1 MAXLEN~ MINID~ LIMIT=1"),
    "XCLAIM": Options("IDLE=1 TIME=1 RETRYCOUNT=1 FORCE JUSTID LASTID=1"),
    "XNACK": Options("RETRYCOUNT=1 FORCE"),
    "XREAD": Options("COUNT=1 BLOCK=1 MAXCOUNT=1 MAXSIZE=1"),
    "XREADGROUP": Options("COUNT=1 BLOCK=1 NOACK MAXCOUNT=1 MAXSIZE=1"),
    "ZADD": Options("NX XX GT LT CH INCR"),
}


def _options(command: str, start: int, until: bytes | None = None) -> Read:
    return lambda words: OPTIONS[command].read(words, start, until)


def _has_none(read: Read, *names: bytes) -> Rule:
    return lambda command: read(command).keys().isdisjoint(names)


def _has_any(read: Read, *names: bytes) -> Rule:
    return lambda command: not read(command).keys().isdisjoint(names)


def _has_all(read: Read, *names: bytes) -> Rule:
    return lambda command: read(command).keys() >= set(names)


# Keys: where a result is stored, and what it is computed from.


def _distinct(first: Argument, others: Command) -> bool:
    return octets(first) not in map(octets, others)


def _skip_list(command: Command, index: int, size: int = 1) -> int:
    """Return the index after a list of words whose count is the word at `index`; each entry has `size` words."""
    count = integer(command[index])
    end = index + 1 + count * size
    if count < 1 or end > len(command):
        raise ValueError("there are not as many words as counted")
    return end


def _merges_elsewhere(command: Command) -> bool:
    return _distinct(command[1], command[3 : _skip_list(command, 2)])


def _overrides_elsewhere(command: Command) -> bool:
    return b"OVERRIDE" in OPTIONS["TDIGEST.MERGE"].read(command, _skip_list(command, 2)) and _merges_elsewhere(command)


def _stores_elsewhere(read: Read) -> Rule:
    def holds(command: Command) -> bool:
        options = read(command)
        return _distinct(command[1], (*options.get(b"STORE", ()), *options.get(b"STOREDIST", ())))

    return holds


def _sorts_elsewhere(command: Command) -> bool:
    options = OPTIONS["SORT"].read(command, 2)
    target = octets(options[b"STORE"][0])
    patterns = (octets(pattern).partition(b"*") for pattern in (*options.get(b"BY", ()), *options.get(b"GET", ())))
    # A pattern names keys, too, and the result may have become one of them.
    read_too = any(star and target.startswith(prefix) for prefix, star, _ in patterns)
    return _distinct(command[1], [target]) and not read_too


# Values.


def _trims_to_one_end(start: Argument, stop: Argument) -> bool:
    """Return whether a window keeps one end of a list, so that a second trim to it changes nothing."""
    first, last = integer(start), integer(stop)
    return (first == 0 and last >= -1) or (first < 0 and last == -1)


def _has_no_index(command: Command) -> bool:
    return _have_no_index(command[2:3])


def _have_no_index(paths: Command) -> bool:
    return b"[" not in b"".join(map(octets, paths))


# Streams and time series.


def _entry_id(command: Command) -> Argument:
    return command[OPTIONS["XADD"].scan(command, 2)[1]]


def _appends_once(command: Command) -> bool:
    options, _ = OPTIONS["XADD"].scan(command, 2)
    return octets(_entry_id(command)) == b"*" and not options.keys().isdisjoint((b"IDMP", b"IDMPAUTO"))


def _ids_of_streams(command: Command, read: str, start: int) -> Command:
    """Return the ids after STREAMS, one for each stream; the options of `read` begin at the index `start`."""
    _, stop = OPTIONS[read].scan(command, start)
    streams = command[stop + 1 :]
    if keyword(command[stop]) != b"STREAMS" or len(streams) % 2 or not streams:
        raise ValueError("there must be STREAMS, with an id for each stream")
    return streams[len(streams) // 2 :]


def _reads_from_ids(command: Command) -> bool:
    return all(is_id(word) or octets(word) == b"+" for word in _ids_of_streams(command, "XREAD", 1))


def _reads_by_id(command: Command) -> bool:
    if keyword(command[1]) != b"GROUP":
        raise ValueError("there must be GROUP")
    return all(map(is_id, _ids_of_streams(command, "XREADGROUP", 4)))


def _claims(command: Command) -> OptionValues:
    start = 5
    while start < len(command) and is_id(command[start]):
        start += 1
    if start == 5:
        raise ValueError("there must be an id")
    return OPTIONS["XCLAIM"].read(command, start)


def _counts_once(command: Command) -> bool:
    mode = keyword(command[3])
    if mode not in (b"SILENT", b"FAIL", b"FATAL") or keyword(command[4]) != b"IDS":
        raise ValueError("there must be a mode and IDS")
    return b"RETRYCOUNT" in OPTIONS["XNACK"].read(command, _skip_list(command, 5)) or mode == b"FAIL"


def _replaces_duplicates(command: Command) -> bool:
    (duplicates,) = _SAMPLE(command)[b"ON_DUPLICATE"]
    return keyword(duplicates) in (b"BLOCK", b"FIRST", b"LAST", b"MIN", b"MAX")


def _adds_one_score(command: Command) -> bool:
    options, stop = OPTIONS["ZADD"].scan(command, 2)
    return b"INCR" not in options and stop + 1 < len(command)


_FIELD_EXPIRY = _options("EXPIRE", 3, b"FIELDS")
_RADIUS = _options("GEORADIUS", 6)
_RADIUS_BY_MEMBER = _options("GEORADIUS", 5)
_SAMPLE = _options("TS.ADD", 4, b"LABELS")

LEAST: Mapping[str, int] = {
    "BITFIELD": 2, "BITOP": 4, "CLIENT KILL": 3, "CMS.MERGE": 4, "EXPIRE": 3, "FT.ADD": 7, "FT.ADDHASH": 4,
    "FT.SUGADD": 4, "GEORADIUS": 6, "GEORADIUSBYMEMBER": 5, "GEOSEARCHSTORE": 8, "GETEX": 2, "HEXPIRE": 6, "HGETEX": 5,
    "HPEXPIRE": 6, "HSETEX": 6, "JSON.ARRTRIM": 5, "JSON.CLEAR": 2, "JSON.DEL": 2, "JSON.FORGET": 2, "JSON.MERGE": 4,
    "JSON.MSET": 4, "JSON.SET": 4, "LREM": 4, "LTRIM": 4, "MIGRATE": 6, "MSETEX": 4, "PEXPIRE": 3, "SDIFFSTORE": 3,
    "SET": 3, "SORT": 2, "TDIGEST.MERGE": 4, "TS.ADD": 4, "TS.MADD": 4, "TS.READ": 3, "XADD": 5, "XCLAIM": 6,
    "XGROUP SETID": 5, "XNACK": 7, "XREAD": 4, "XREADGROUP": 7, "ZADD": 4, "ZDIFFSTORE": 4, "ZINTERSTORE": 4,
    "ZRANGESTORE": 5, "ZUNIONSTORE": 4,
}  # fmt: skip
"""The least number of words, the name included, with which the rules of a command are tried."""

_EDITS = ("JSON.CLEAR", "JSON.DEL", "JSON.FORGET", "JSON.MERGE")

RULES: Mapping[str, Mapping[str, Rule]] = {
    "BITFIELD": {"no INCRBY": _has_none(_options("BITFIELD", 2), b"INCRBY")},
    "BITOP": {
        "AND or OR": lambda command: keyword(command[1]) in (b"AND", b"OR"),
        "destination not among the sources": lambda command: _distinct(command[2], command[3:]),
    },
    "CLIENT KILL": {"ID": _has_any(_options("CLIENT KILL", 2), b"ID")},
    "CMS.MERGE": {"destination not among the sources": _merges_elsewhere},
    "EXPIRE": {"NX or LT": _has_any(_options("EXPIRE", 3), b"NX", b"LT")},
    "FT.ADD": {"REPLACE": _has_any(_options("FT.ADD", 4, b"FIELDS"), b"REPLACE")},
    "FT.ADDHASH": {"REPLACE": _has_any(_options("FT.ADDHASH", 4), b"REPLACE")},
    "FT.SUGADD": {"no INCR": _has_none(_options("FT.SUGADD", 4), b"INCR")},
    "GEORADIUS": {
        "no STORE or STOREDIST": _has_none(_RADIUS, b"STORE", b"STOREDIST"),
        "stored elsewhere": _stores_elsewhere(_RADIUS),
    },
    "GEORADIUSBYMEMBER": {
        "no STORE or STOREDIST": _has_none(_RADIUS_BY_MEMBER, b"STORE", b"STOREDIST"),
        "stored elsewhere": _stores_elsewhere(_RADIUS_BY_MEMBER),
    },
    "GEOSEARCHSTORE": {"destination not the source": lambda command: _distinct(command[1], command[2:3])},
    "GETEX": {"neither EX nor PX": _has_none(_options("GETEX", 2), b"EX", b"PX")},
    "HEXPIRE": {"NX or LT": _has_any(_FIELD_EXPIRY, b"NX", b"LT")},
    "HGETEX": {"neither EX nor PX": _has_none(_options("GETEX", 2, b"FIELDS"), b"EX", b"PX")},
    "HPEXPIRE": {"NX or LT": _has_any(_FIELD_EXPIRY, b"NX", b"LT")},
    "HSETEX": {"neither NX nor FNX": _has_none(_options("HSETEX", 2, b"FIELDS"), b"NX", b"FNX")},
    "JSON.ARRTRIM": {
        "one end kept": lambda command: _trims_to_one_end(command[3], command[4]),
        "path without an index": _has_no_index,
    },
    **{name: {"path without an index": _has_no_index} for name in _EDITS},
    "JSON.MSET": {"paths without an index": lambda command: len(command) % 3 == 1 and _have_no_index(command[2::3])},
    "JSON.SET": {"no NX": _has_none(_options("JSON.SET", 4), b"NX"), "path without an index": _has_no_index},
    "LREM": {"count 0": lambda command: integer(command[2]) == 0},
    "LTRIM": {"one end kept": lambda command: _trims_to_one_end(command[2], command[3])},
    "MIGRATE": {"COPY and REPLACE": _has_all(_options("MIGRATE", 6, b"KEYS"), b"COPY", b"REPLACE")},
    "MSETEX": {
        "no NX": _has_none(lambda command: OPTIONS["MSETEX"].read(command, _skip_list(command, 1, size=2)), b"NX")
    },
    "PEXPIRE": {"NX or LT": _has_any(_options("EXPIRE", 3), b"NX", b"LT")},
    "SDIFFSTORE": {"destination not among the subtracted keys": lambda command: _distinct(command[1], command[3:])},
    "SET": {
        "none of NX, GET, IFEQ, IFNE, IFDEQ, IFDNE": _has_none(
            _options("SET", 3), b"NX", b"GET", b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE"
        ),
        "no GET": _has_none(_options("SET", 3), b"GET"),
    },
    "SORT": {"no STORE": _has_none(_options("SORT", 2), b"STORE"), "stored elsewhere": _sorts_elsewhere},
    "TDIGEST.MERGE": {"OVERRIDE, and destination not among the sources": _overrides_elsewhere},
    "TS.ADD": {
        "explicit timestamp": lambda command: is_id(command[2]),
        "ON_DUPLICATE other than SUM": _replaces_duplicates,
    },
    "TS.MADD": {"explicit timestamps": lambda command: len(command) % 3 == 1 and all(map(is_id, command[2::3]))},
    "TS.READ": {"explicit timestamp or -": lambda command: is_id(command[2]) or octets(command[2]) == b"-"},
    "XADD": {"explicit id": lambda command: is_id(_entry_id(command)), "IDMP or IDMPAUTO": _appends_once},
    "XCLAIM": {"JUSTID or RETRYCOUNT": _has_any(_claims, b"JUSTID", b"RETRYCOUNT")},
    "XGROUP SETID": {"explicit id": lambda command: is_id(command[4])},
    "XNACK": {"FAIL or RETRYCOUNT": _counts_once},
    "XREAD": {"explicit ids or +": _reads_from_ids},
    "XREADGROUP": {"explicit ids": _reads_by_id},
    "ZADD": {"no INCR": _adds_one_score},
    "ZDIFFSTORE": {
        "destination not among the subtracted keys": lambda command: _distinct(
            command[1], command[4 : _skip_list(command, 2)]
        )
    },
    "ZINTERSTORE": {"destination not among the sources": _merges_elsewhere},
    "ZRANGESTORE": {"destination not the source": lambda command: _distinct(command[1], command[2:3])},
    "ZUNIONSTORE": {"destination not among the sources": _merges_elsewhere},
}
