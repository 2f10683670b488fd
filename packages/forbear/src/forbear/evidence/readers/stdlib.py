"""smtplib shows how far a message got by its frames; sqlite3 has none, but its connection says what was rolled back."""

from contextlib import suppress

from forbear.core.chain import traceback_of
from forbear.evidence.look import Look, frames_below
from forbear.evidence.sent import NamedCall, Sent, Statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_BEGIN_DATA = 354


def read_sendmail(look: Look, trace: "TracebackType") -> None:
    """Read a message that is sent. A server takes it at the end of DATA, not before, and says so if it refuses it."""
    unsent = ("smtplib", "data") not in frames_below(trace)
    look.add(id(trace.tb_frame), Sent("smtplib", "named", "smtp.sendmail", NamedCall("smtp.sendmail", {})))
    look.prove(True if unsent else None)


def read_data(look: Look, trace: "TracebackType") -> None:
    """Read how far DATA got: nothing of the message is sent before the server has answered 354."""
    names = look.names(trace)
    code = names.get("code")
    look.prove(type(code) is int and code != _BEGIN_DATA and "q" not in names)


def read_goodbye(look: Look, trace: "TracebackType") -> None:
    """Read the end of a session, which shows nothing of the messages before it."""
    if look.current is None:
        unread = "the end of a session does not show its messages"
        look.add(id(trace.tb_frame), Sent("smtplib", "named", "", unread=unread))


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
    kept: dict[str, Any] = {}
    with suppress(AttributeError):
        kept = object.__getattribute__(names.get("self"), "__dict__")
    found: dict[int, tuple[Any, tuple[int, ...]]] = {}
    values: list[Any] = [*names.values(), *kept.values()]
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
