"""The verdicts on errors of SQL databases and MongoDB, as they count for one whole transaction.

NOT_EXECUTED means that the transaction was rolled back or never begun. SQLSTATEs are judged one by one, never by their
class: 40001 was rolled back, 40003 is unknown, and 40002 would fail again.
"""

import re
from collections.abc import Iterable, Sequence

from forbear.core.chain import arguments_of, attributes_of, context_of, read
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind, Verdict

CROWDED = Verdict(Kind.NOT_EXECUTED, throttled=True)

SQLSTATES = {
    "40001": NOT_EXECUTED,  # serialization failure
    "40P01": NOT_EXECUTED,  # deadlock
    "55P03": NOT_EXECUTED,  # lock not available: PostgreSQL aborts the whole transaction
    "57P03": NOT_EXECUTED,  # the server is starting up
    "53300": CROWDED,  # too many connections
    "08001": NOT_EXECUTED,  # the client could not connect
    "08004": NOT_EXECUTED,  # the server rejected the connection
    "40003": TRANSIENT,  # statement completion unknown
    "57P01": TRANSIENT,  # the server is shutting down, or the connection was terminated
    "57P02": TRANSIENT,  # the server crashed
    "08000": TRANSIENT,  # a connection error
    "08003": TRANSIENT,  # asyncpg's code for a connection lost in the middle of an operation
    "08006": TRANSIENT,  # connection failure
    "08007": TRANSIENT,  # transaction resolution unknown
    "08P01": TRANSIENT,  # protocol violation: what a broken connection may look like
}
"""The verdicts by SQLSTATE. All others are permanent, also 40002, 57P04, 57014, 25P02 and 25006."""

MYSQL_NUMBERS = {
    1213: NOT_EXECUTED,  # deadlock: the whole transaction was rolled back
    3101: NOT_EXECUTED,  # rolled back by a plugin, as after a conflict in a replication group
    1040: CROWDED,  # too many connections
    1203: CROWDED,  # too many connections of this user
    2002: NOT_EXECUTED,  # cannot connect through the socket
    2003: NOT_EXECUTED,  # cannot connect
    2005: NOT_EXECUTED,  # unknown host
    1205: TRANSIENT,  # lock wait timeout: only the statement was rolled back
    3572: TRANSIENT,  # NOWAIT: only the statement was rolled back
    1053: TRANSIENT,  # the server is shutting down
    1927: TRANSIENT,  # the connection was killed
    2006: TRANSIENT,  # the server has gone away, perhaps after it received the statement
    2013: TRANSIENT,  # the connection was lost during a query
    2055: TRANSIENT,  # the connection was lost
    4031: TRANSIENT,  # the server closed an idle connection
}
"""The verdicts by MySQL's error number. All others are permanent."""

_LOST = (0, 1053, 1927, 2006, 2013, 2055, 4031)
"""The numbers of MySQL after which there is no connection."""

_SQLITE_BUSY = (5, 6)  # SQLITE_BUSY and SQLITE_LOCKED; the transaction stays open, and may still be committed

MONGODB_CODES = frozenset({
    6, 7, 89, 91, 134, 189, 262, 9001, 10058, 10107, 11600, 11602, 13435, 13436,
})  # fmt: skip
"""MongoDB's codes that its specification of retryable writes lists: a failover, a shutdown, a broken connection."""

_MYSQL = frozenset({"pymysql", "MySQLdb", "_mysql_exceptions", "mysql", "mariadb", "asyncmy"})
_POSTGRESQL = frozenset({"psycopg.Error", "psycopg2.Error", "asyncpg.exceptions._base.PostgresError"})
_NO_PLACE = frozenset({
    "sqlalchemy.exc.TimeoutError", "psycopg_pool.PoolTimeout", "psycopg_pool.TooManyRequests",
    "psycopg.errors.ConnectionTimeout",
})  # fmt: skip
"""Errors of pools without a free connection, and of connections that were never made."""

_NEVER_CONNECTED = ("connection failed: ", "connection is bad: ", "failed to resolve host ")
"""The beginnings of texts that psycopg raises only while it connects."""
_REFUSED_FOR_GOOD = re.compile(
    r"(?:password|Peer|Ident) authentication failed|no pg_hba\.conf entry|certificate verify failed"
    r'|(?:database|role) "[^"]*" does not exist'
)
_COMMITS = re.compile(r"\bCALL\b|\bDO\b(?!\s+(?:NOTHING|UPDATE)\b)", re.IGNORECASE)
"""CALL, and DO but for ON CONFLICT DO NOTHING and DO UPDATE; comments may stand before them."""
_CLOSED = ("connection is closed", "connection already closed")
_LONGEST = 10_000
"""The number of characters of a text that are read."""


def database_verdict(error: BaseException, names: frozenset[str], chain: Iterable[BaseException]) -> Verdict | None:
    """Return the verdict on an error of a database, None for others; one of `chain` may know the statement."""
    if "pymongo.errors.PyMongoError" in names:
        return _mongodb(error, names)
    if any(name.partition(".")[0] in _MYSQL for name in names):
        return _mysql(error)
    if names & _NO_PLACE:
        return NOT_EXECUTED
    state = sqlstate_of(error)
    if state is not None:
        verdict = SQLSTATES.get(state, PERMANENT)
        if verdict is NOT_EXECUTED and any(_may_commit_inside(outer) for outer in chain):
            return TRANSIENT
        return verdict
    if "sqlite3.Error" in names:
        return TRANSIENT if _number(read(error, "sqlite_errorcode")) & 0xFF in _SQLITE_BUSY else PERMANENT
    return _judge_without_state(error, names)


def keeps_connection(error: BaseException) -> bool:
    """Return whether a connection of MySQL or SQLite goes on after an error, and so may commit what came before.

    That of PostgreSQL does not. After a deadlock of MySQL it goes on, too, but without what came before.
    """
    packages = {str(kind.__module__).partition(".")[0] for kind in type(error).__mro__}
    if not packages.isdisjoint(_MYSQL):
        return _mysql_number(error) not in _LOST
    return "sqlite3" in packages


def is_let_through(errors: "Sequence[BaseException]") -> bool:
    """Return whether a function let the error of such a driver pass, bare or as SQLAlchemy wraps it."""
    outermost = errors[0]
    wrapped = attributes_of(outermost).get("orig")
    return keeps_connection(outermost) or any(each is wrapped for each in errors)


def is_busy(errors: "Sequence[BaseException]") -> bool:
    """Return whether SQLite was locked: then it has not executed the statement."""
    codes = (attributes_of(each).get("sqlite_errorcode") for each in errors)
    return any(type(code) is int and code & 0xFF in _SQLITE_BUSY for code in codes)


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error, None without one: its attribute `sqlstate` or `pgcode`."""
    for name in ("sqlstate", "pgcode"):
        state = read(error, name)
        if isinstance(state, str) and len(state) == 5 and state.isascii() and state.isalnum():
            return state
    return None


def _judge_without_state(error: BaseException, names: frozenset[str]) -> Verdict | None:
    """Return the verdict on an error without SQLSTATE about a connection; None for all others."""
    text = _text(error)
    if "psycopg_pool.PoolClosed" in names:
        return PERMANENT
    if names & {"psycopg.OperationalError", "psycopg2.OperationalError"}:
        if _REFUSED_FOR_GOOD.search(text):
            return PERMANENT
        return NOT_EXECUTED if text.startswith(_NEVER_CONNECTED) else TRANSIENT
    if any(name.endswith(".InterfaceError") for name in names) and text.endswith(_CLOSED):
        return TRANSIENT
    return PERMANENT if names & _POSTGRESQL else None


def _mysql(error: BaseException) -> Verdict:
    """Return the verdict on an error of a client for MySQL or MariaDB.

    PyMySQL's number 0 says that it had closed the connection before; what it was handling then counts as unproven.
    """
    number = _mysql_number(error)
    if number == 0 and any(kind.__name__ == "InterfaceError" for kind in type(error).__mro__):
        lost = context_of(error)
        if lost is None or lost is error:
            return PERMANENT
        verdict = MYSQL_NUMBERS.get(_number(next(iter(arguments_of(lost)), None)), PERMANENT)
        return verdict.replace(kind=Kind.TRANSIENT) if verdict.kind is Kind.NOT_EXECUTED else verdict
    return MYSQL_NUMBERS.get(number, PERMANENT)


def _mysql_number(error: BaseException) -> int:
    arguments = arguments_of(error)
    return _number(read(error, "errno")) or _number(arguments[0] if arguments else None)


def _mongodb(error: BaseException, names: frozenset[str]) -> Verdict:
    """Return the verdict on an error of pymongo: by its labels, else by its class, else by the server's code."""

    def has_label(label: str) -> bool:
        return read(error, "has_error_label")(label) is True

    overloaded = has_label("SystemOverloadedError")
    if has_label("UnknownTransactionCommitResult"):
        return TRANSIENT  # commit again; to run the transaction again may apply it twice
    if has_label("TransientTransactionError") or has_label("NoWritesPerformed"):
        return Verdict(Kind.NOT_EXECUTED, throttled=overloaded)
    lost = "pymongo.errors.ConnectionFailure" in names or _number(read(error, "code")) in MONGODB_CODES
    if lost or overloaded or has_label("RetryableWriteError"):
        return Verdict(Kind.TRANSIENT, throttled=overloaded)
    return PERMANENT


def _may_commit_inside(error: BaseException) -> bool:
    """Return whether the statement of an error, where known, calls a procedure or block that may commit."""
    statements = (read(error, "statement"), read(error, "query"))
    return any(
        isinstance(statement, str) and (len(statement) > _LONGEST or _COMMITS.search(statement) is not None)
        for statement in statements
    )


def _text(error: BaseException) -> str:
    """Return the beginning of an error's text, which is its first argument; "" if that is no string."""
    arguments = arguments_of(error)
    text = arguments[0] if arguments else ""
    return text[:_LONGEST] if isinstance(text, str) else ""


def _number(value: object) -> int:
    """Return a value if it is a whole number, else 0."""
    return value if isinstance(value, int) else 0
