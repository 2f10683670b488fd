"""SQLAlchemy, psycopg and PyMySQL: the statement is an attribute or a variable; at COMMIT only frames show it."""

from forbear.evidence.look import Look
from forbear.evidence.sent import Sent, Statement, get_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_LONGEST = 10_000
_CONNECTIONS = frozenset({"Connection", "Session", "AsyncConnection", "AsyncSession"})
"""The classes of SQLAlchemy that have a transaction."""


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
    names = look.names(trace)
    client = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
    here = names.get("self")
    _add(look, id(trace.tb_frame), client, "COMMIT", False, (id(here),))


def read_statement(look: Look, trace: "TracebackType") -> None:
    """Read the statement of a driver's cursor, or of the connection's shortcut."""
    names = look.names(trace)
    client = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
    here = names["self"]
    connection = get_own(here, "_conn") or get_own(here, "connection") or here
    autocommit = get_own(connection, "_autocommit")
    if autocommit is None:
        autocommit = get_own(connection, "autocommit_mode")
    text = names.get("query")
    if type(text) is bytes:
        text = text.decode("utf-8", "replace")
    if look.current is None:
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
