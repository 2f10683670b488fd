"""SQLAlchemy, psycopg and PyMySQL show a statement, or a COMMIT, by frames; pymongo's methods name the operation.

sqlite3 has no frames, but its connection says what was rolled back.
"""

import re
from contextvars import copy_context

from forbear.core.chain import entries_of, innermost_of, read, traceback_of
from forbear.core.check import is_list, is_mapping
from forbear.evidence.look import Look, client_of, find_below
from forbear.evidence.objects import find_roots, reach
from forbear.evidence.sent import Sent, Statement, dict_of, get_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Any

_LONGEST = 10_000
_CONNECTIONS = frozenset({"Connection", "Session", "AsyncConnection", "AsyncSession"})
"""The classes of SQLAlchemy that have a transaction."""

_IN_TRANSACTION, _AUTOCOMMIT = 1, 2
"""Bits of the status that a server of MySQL sends with each answer."""

_PG_OPEN = (1, 2, 3)
"""The states of libpq in which a transaction is open: a command is running, none is, or the transaction has failed."""

_READS = (
    "find_one", "count_documents", "estimated_document_count", "distinct", "list_indexes", "index_information",
)  # fmt: skip
"""The methods of pymongo that only read."""

_SEVERAL = ("insert_many", "bulk_write", "create_indexes")
"""Methods that may send several commands, so that what the last one met says nothing of the others."""

_MONGO_OPEN = (2, 3)
"""The states of a transaction of pymongo that has begun and has not ended."""

_SELECTIONS = ("select_server", "_select_servers_loop")  # before 4.8 a session selected its server by itself

_ABSOLUTE = frozenset({"$set", "$unset", "$setOnInsert", "$max", "$min"})
"""Operators of updates that leave the same document if they are applied twice."""


_WITH = re.compile(r"\s*WITH\b.*\b(INSERT|UPDATE|DELETE|REPLACE)\b", re.IGNORECASE | re.DOTALL)


def read_failed(look: Look, statement: object) -> None:
    """Read the statement that SQLAlchemy keeps; None stands for a COMMIT, or for no statement at all."""
    error = look.error
    is_own = any(kind.__module__ == "sqlalchemy.exc" for kind in type(error).__mro__)
    if error is not None and is_own and type(statement) is str:
        _add_alchemy(look, id(error), statement, error.__traceback__)


def _add_alchemy(look: Look, key: int, text: str, trace: "TracebackType | None") -> None:
    """Add a statement of SQLAlchemy, by the sessions, connections and cursors among the variables of its frames."""
    connections: dict[int, object] = {}
    cursor: object = None
    for entry in entries_of(trace):
        if str(entry.tb_frame.f_globals.get("__name__")).startswith("sqlalchemy."):
            names = look.names(entry)
            here = names.get("self")
            if type(here).__name__ in _CONNECTIONS:
                connections[id(here)] = here
            cursor = names.get("cursor", cursor)
    modes = (_autocommit_of_alchemy(each) for each in connections.values())
    autocommit = next((mode for mode in modes if mode is not None), None)
    if not autocommit and _kind_of(cursor) == "Cursor" and _commits_alone(_ask(cursor, "connection"), text):
        autocommit = not any(map(_has_begin_hook, connections.values()))
    is_open = any(get_own(each, "_transaction") is not None for each in connections.values())
    _add(look, key, "sqlalchemy", text, autocommit, tuple(connections), is_open and autocommit is not True)


def read_commit(look: Look, trace: "TracebackType") -> None:
    """Read the end of a transaction."""
    client = client_of(trace.tb_frame)
    if client == "sqlalchemy":
        whole = trace if look.error is None else traceback_of(look.error)
        _add_alchemy(look, id(trace.tb_frame), "COMMIT", whole)
        return
    here = look.names(trace).get("self")
    _add(look, id(trace.tb_frame), client, "COMMIT", False, (id(here),), _is_open(here))


def read_statement(look: Look, trace: "TracebackType") -> None:
    """Read the statement of a driver's cursor, or of the connection's shortcut."""
    if look.is_within("sqlalchemy", "psycopg", "pymysql"):
        return
    names = look.names(trace)
    here = names["self"]
    connection = get_own(here, "_conn") or get_own(here, "connection") or _find_below(look, trace) or here
    text = names.get("query")
    if type(text) is bytes:
        text = text.decode("utf-8", "replace")
    _add(
        look,
        id(trace.tb_frame),
        client_of(trace.tb_frame),
        text if type(text) is str else "",
        _autocommit_of(connection),
        (id(here), id(connection)),
        _is_open(connection),
    )


def _find_below(look: Look, trace: "TracebackType | None") -> object:
    """Return the connection of PyMySQL that the frames below have; a closed cursor has none."""
    own = (each for each in entries_of(trace) if each.tb_frame.f_globals.get("__name__") == "pymysql.connections")
    return next((look.names(entry).get("self") for entry in own), None)


def _autocommit_of(connection: object) -> bool | None:
    """Return whether a connection of psycopg or PyMySQL commits each statement; the server's own word is first."""
    status = get_own(connection, "server_status")
    if type(status) is int:
        return status & _AUTOCOMMIT != 0
    known: bool | None = get_own(connection, "_autocommit")
    return get_own(connection, "autocommit_mode") if known is None else known


def _is_open(connection: object) -> bool:
    """Return whether a transaction of psycopg or PyMySQL is open, by what the server said last; a closed one is not."""
    status = get_own(connection, "server_status")
    if type(status) is int:
        return status & _IN_TRANSACTION != 0 and get_own(connection, "_sock") is not None
    handle = get_own(connection, "pgconn")
    if not type(handle).__module__.startswith("psycopg"):
        return False
    return read(handle, "transaction_status") in _PG_OPEN  # libpq's own note, without a look at the server


def _autocommit_of_alchemy(connection: object) -> bool | None:
    """Return whether a connection of SQLAlchemy commits each statement, None if that cannot be read."""
    dialect = get_own(connection, "dialect")
    options = get_own(connection, "_execution_options")
    if dialect is None or options is None:
        return None
    level = options.get("isolation_level") or get_own(dialect, "_on_connect_isolation_level")
    return level is not None and str(level).upper() == "AUTOCOMMIT"


def _has_begin_hook(connection: object) -> bool:
    """Return whether somebody listens to the begin of transactions, as SQLAlchemy's recipe for SQLite sends BEGIN."""
    hooks = get_own(get_own(get_own(connection, "engine"), "dispatch"), "begin")
    return bool(get_own(hooks, "listeners") or get_own(hooks, "parent_listeners"))


def _add(
    look: Look,
    key: int,
    client: str,
    text: str,
    autocommit: bool | None,
    connection: "tuple[int, ...]",
    still_open: bool,
) -> None:
    words = text.split(None, 1) if len(text) <= _LONGEST else []
    unread = None if words else "its statement is not known"
    subject = Statement(text[:_LONGEST], autocommit, connection, still_open)
    look.add(key, Sent(client, "sql", words[0].upper() if words else "", subject, unread=unread))


def read_method(look: Look, trace: "TracebackType") -> None:
    """Read a method of a collection; the outermost one counts. Before a server was selected, nothing was sent.

    pymongo raises the error of the selection for a first try only; that of a second try is the error of the first.
    """
    if not look.is_within("pymongo"):
        function = trace.tb_frame.f_code.co_name
        unsent = True if function not in _SEVERAL and find_below(trace, _SELECTIONS) else None
        names = look.names(trace)
        session = names.get("session") or _find_bound()
        parameters = {
            "safe": _is_safe(function, names),
            "session": None if session is None else id(session),
            "open": get_own(get_own(session, "_transaction"), "state") in _MONGO_OPEN,
            "several": function in _SEVERAL,
        }
        look.add_named(trace, "pymongo", f"pymongo.{function}", parameters, unsent)


def _find_bound() -> object:
    """Return the session of pymongo that `bind` has made the one of all calls, None without one."""
    kinds = ("ClientSession", "AsyncClientSession")
    return next((each for each in copy_context().values() if type(each).__name__ in kinds), None)


def read_cursor(look: Look, trace: "TracebackType") -> None:
    """Read a cursor that asks for more: it only reads, whatever filled it."""
    if not look.is_within("pymongo"):
        look.add_named(trace, "pymongo", "pymongo.find", {"safe": True})


def read_mongo_commit(look: Look, trace: "TracebackType") -> None:
    """Read the commit of a transaction, which may have happened."""
    if not look.is_within("pymongo"):
        look.add_named(trace, "pymongo", "pymongo.commit_transaction", {"safe": False})


def read_mongo_command(look: Look, trace: "TracebackType") -> None:
    """Read a command of a database, of which nothing more is known."""
    if not look.is_within("pymongo"):
        look.add(id(trace.tb_frame), Sent("pymongo", "named", "", unread="its command is not known"))


def _is_safe(function: str, names: "dict[str, Any]") -> bool:
    """Return whether a repeat changes nothing: a read, or a write of one document that its id names, as a whole."""
    if function in _READS:
        return True
    if function == "aggregate":
        stages: Any = names.get("pipeline")
        return is_list(stages) and all(is_mapping(each) and not {"$out", "$merge"} & each.keys() for each in stages)
    wanted: Any = names.get("filter")
    if not is_mapping(wanted) or list(wanted) != ["_id"] or is_mapping(wanted["_id"]) or names.get("array_filters"):
        return False
    update: Any = names.get("update")
    by_operators = is_mapping(update) and len(update) > 0 and update.keys() <= _ABSOLUTE
    return function in ("replace_one", "delete_one") or (function == "update_one" and by_operators)


def read_code(look: Look, code: object) -> None:
    """Read an error of SQLite by the state of the connection that the function which called SQLite can reach.

    Without such a connection, or if it was closed, nothing is known. SQLAlchemy, if it is between, knows more.
    """
    error = look.error
    is_own = any(kind.__module__ == "sqlite3" for kind in type(error).__mro__)
    if error is None or not is_own or any(sent.client == "sqlalchemy" for sent in look.sent.values()):
        return
    trace = innermost_of(error)
    if trace is None:
        return
    names = look.names(trace)
    found = _find_connections([*names.values(), *dict_of(names.get("self")).values()])
    values, used = ([], set[str]()) if found else find_roots(trace)
    # `executescript` commits first, and then each statement alone.
    is_script = any("executescript" in entry.tb_frame.f_code.co_names for entry in entries_of(traceback_of(error)))
    for connection, through in found or _find_connections(reach([*names.values(), *values], used)):
        is_open = _ask(connection, "in_transaction")
        if is_open is not None or is_script:  # a closed connection tells nothing more
            autocommit = is_script or _commits_alone(connection)
            unchanged = not is_script and _ask(connection, "total_changes") == 0
            subject = Statement("", autocommit, (id(connection), *through), bool(is_open), unchanged)
            look.add(id(connection), Sent("sqlite3", "sql", "", subject))


def _find_connections(values: "Iterable[Any]") -> "list[tuple[Any, tuple[int, ...]]]":
    """Return the connections among values, each with the ids of what leads to it."""
    found: dict[int, tuple[Any, tuple[int, ...]]] = {}
    for value in values:
        kind = _kind_of(value)
        if kind == "Cursor":
            connection = _ask(value, "connection")
            found[id(connection)] = connection, (id(value),)
        elif kind == "Connection":
            found.setdefault(id(value), (value, ()))
    return list(found.values())


def _kind_of(value: object) -> str:
    return next((kind.__name__ for kind in type(value).__mro__ if kind.__module__ == "sqlite3"), "")


def _ask(value: object, name: str) -> "Any":
    """Return an attribute by the class of sqlite3 itself, None if a closed connection has none."""
    for kind in type(value).__mro__:
        if kind.__module__ == "sqlite3" and name in kind.__dict__:
            try:
                return kind.__dict__[name].__get__(value)
            except Exception:
                return None
    return None


def _commits_alone(connection: object, text: str = "") -> bool:
    """Return whether each statement commits by itself; unless told otherwise, one that begins with WITH does.

    A closed connection tells nothing, and counts as one that was opened without options.
    """
    mode = _ask(connection, "autocommit")
    if mode not in (None, -1):
        return mode is True
    is_plain = _ask(connection, "isolation_level") is not None or _ask(connection, "in_transaction") is None
    return not is_plain or _WITH.match(text) is not None
