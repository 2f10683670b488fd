"""SQLAlchemy, psycopg and PyMySQL show a statement, or a COMMIT, by frames; pymongo's methods name the operation.

sqlite3 has no frames, but its connection says what was rolled back.
"""

from forbear.core.chain import traceback_of
from forbear.core.check import is_list, is_mapping
from forbear.evidence.look import Look, client_of, find_below
from forbear.evidence.sent import NamedCall, Sent, Statement, dict_of, get_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_LONGEST = 10_000
_CONNECTIONS = frozenset({"Connection", "Session", "AsyncConnection", "AsyncSession"})
"""The classes of SQLAlchemy that have a transaction."""

_READS = (
    "find_one", "count_documents", "estimated_document_count", "distinct", "list_indexes", "index_information",
)  # fmt: skip
"""The methods of pymongo that only read."""

_SEVERAL = ("insert_many", "bulk_write", "create_indexes")
"""Methods that may send several commands, so that what the last one met says nothing of the others."""

_SELECTIONS = ("select_server", "_select_servers_loop")  # before 4.8 a session selected its server by itself

_ABSOLUTE = frozenset({"$set", "$unset", "$setOnInsert", "$max", "$min"})
"""Operators of updates that leave the same document if they are applied twice."""


def read_failed(look: Look, error: BaseException, statement: object) -> None:
    """Read the statement that SQLAlchemy keeps; None stands for a COMMIT, or for no statement at all."""
    if type(statement) is str and any(kind.__module__ == "sqlalchemy.exc" for kind in type(error).__mro__):
        autocommit, connections, trace = None, set[int](), error.__traceback__
        while trace is not None:
            if str(trace.tb_frame.f_globals.get("__name__")).startswith("sqlalchemy."):
                here = look.names(trace).get("self")
                if type(here).__name__ in _CONNECTIONS:
                    connections.add(id(here))
                    autocommit = _autocommit_of_alchemy(here) if autocommit is None else autocommit
            trace = trace.tb_next
        _add(look, id(error), "sqlalchemy", statement, autocommit, tuple(connections))


def read_commit(look: Look, trace: "TracebackType") -> None:
    """Read the end of a transaction."""
    client = client_of(trace.tb_frame)
    here = look.names(trace).get("self")
    _add(look, id(trace.tb_frame), client, "COMMIT", False, (id(here),))


def read_statement(look: Look, trace: "TracebackType") -> None:
    """Read the statement of a driver's cursor, or of the connection's shortcut."""
    client = client_of(trace.tb_frame)
    names = look.names(trace)
    here = names["self"]
    connection = get_own(here, "_conn") or get_own(here, "connection") or here
    autocommit = get_own(connection, "_autocommit")
    if autocommit is None:
        autocommit = get_own(connection, "autocommit_mode")
    text = names.get("query")
    if type(text) is bytes:
        text = text.decode("utf-8", "replace")
    if not look.is_within("sqlalchemy", "psycopg", "pymysql"):
        _add(
            look, id(trace.tb_frame), client, text if type(text) is str else "", autocommit, (id(here), id(connection))
        )


def _autocommit_of_alchemy(connection: object) -> bool | None:
    """Return whether a connection of SQLAlchemy commits each statement, None if that cannot be read."""
    dialect = get_own(connection, "dialect")
    options = get_own(connection, "_execution_options")
    if dialect is None or options is None:
        return None
    level = options.get("isolation_level") or get_own(dialect, "_on_connect_isolation_level")
    return level is not None and str(level).upper() == "AUTOCOMMIT"


def _add(look: Look, key: int, client: str, text: str, autocommit: bool | None, connection: "tuple[int, ...]") -> None:
    words = text.split(None, 1) if len(text) <= _LONGEST else []
    unread = None if words else "its statement is not known"
    subject = Statement(text[:_LONGEST], autocommit=autocommit, connection=connection)
    look.add(key, Sent(client, "sql", words[0].upper() if words else "", subject, unread=unread))


def read_method(look: Look, trace: "TracebackType") -> None:
    """Read a method of a collection; the outermost one counts. Before a server was selected, nothing was sent.

    pymongo raises the error of the selection for a first try only; that of a second try is the error of the first.
    """
    if not look.is_within("pymongo"):
        function = trace.tb_frame.f_code.co_name
        unsent = True if function not in _SEVERAL and find_below(trace, _SELECTIONS) else None
        names = look.names(trace)
        session = names.get("session")
        parameters = {
            "safe": _is_safe(function, names),
            "session": None if session is None else id(session),
            "several": function in _SEVERAL,
        }
        name = f"pymongo.{function}"
        look.add(id(trace.tb_frame), Sent("pymongo", "named", name, NamedCall(name, parameters), unsent=unsent))


def read_cursor(look: Look, trace: "TracebackType") -> None:
    """Read a cursor that asks for more: it only reads, whatever filled it."""
    if not look.is_within("pymongo"):
        call = NamedCall("pymongo.find", {"safe": True, "session": None})
        look.add(id(trace.tb_frame), Sent("pymongo", "named", call.name, call))


def read_mongo_commit(look: Look, trace: "TracebackType") -> None:
    """Read the commit of a transaction, which may have happened."""
    if not look.is_within("pymongo"):
        call = NamedCall("pymongo.commit_transaction", {"safe": False, "session": None})
        look.add(id(trace.tb_frame), Sent("pymongo", "named", call.name, call))


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


def read_code(look: Look, error: BaseException, code: object) -> None:
    """Read an error of SQLite by the state of the connection, a variable of the function that called SQLite.

    Without such a variable, or if it was closed, nothing is known. SQLAlchemy, if it is between, knows more.
    """
    is_own = any(kind.__module__ == "sqlite3" for kind in type(error).__mro__)
    if not is_own or any(sent.client == "sqlalchemy" for sent in look.sent.values()):
        return
    trace = traceback_of(error)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    for connection, through in [] if trace is None else _find_connections(look.names(trace)):
        is_open = _ask(connection, "in_transaction")
        if is_open is not None:  # a closed connection tells nothing more
            subject = Statement("", autocommit=_commits_alone(connection), connection=(id(connection), *through))
            subject.still_open = is_open
            look.add(id(connection), Sent("sqlite3", "sql", "", subject))


def _find_connections(names: "dict[str, Any]") -> "list[tuple[Any, tuple[int, ...]]]":
    """Return the connections among variables and what `self` keeps, each with the ids of what leads to it."""
    found: dict[int, tuple[Any, tuple[int, ...]]] = {}
    values: list[Any] = [*names.values(), *dict_of(names.get("self")).values()]
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


def _commits_alone(connection: object) -> bool:
    """Return whether each statement commits by itself."""
    return _ask(connection, "autocommit") is True or (
        _ask(connection, "autocommit") in (None, -1) and _ask(connection, "isolation_level") is None
    )
