"""Transactions of PyMySQL in decorated functions, against a small server of MySQL: what it commits, and how often."""

import socket
import struct
from collections.abc import Callable, Generator
from contextlib import closing
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any

import pytest
import sqlalchemy

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.listen import listening

pymysql: Any = import_module("pymysql")
POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
IN_TRANSACTION, AUTOCOMMIT = 1, 2
CURRENT: ContextVar[Any] = ContextVar("current")


class Server:
    """A server of MySQL for one client after the other; the first UPDATE fails with the number `error`.

    As in MySQL, 1213 rolls the whole transaction back, all other errors leave it open.
    """

    def __init__(self) -> None:
        self.error: int | None = None
        self.committed: list[str] = []
        self.port = 0

    def talk(self, connection: socket.socket) -> None:
        """Greet, and answer each command of a connection."""
        status, pending = AUTOCOMMIT, list[str]()
        text = struct.pack("<B7sI8sxHBHHB10x13s", 10, b"8.0.36\0", 1, b"a" * 8, 0xA200, 45, 2, 0x000F, 21, b"b" * 12)
        with connection.makefile("rb") as lines:
            send(connection, 0, text + b"mysql_native_password\0")
            while head := lines.read(4):
                body = lines.read(int.from_bytes(head[:3], "little"))
                words = body[1:].decode("ascii", "replace").upper().split() if body[:1] == b"\3" else [""]
                number = None
                if words[0] == "UPDATE" and self.error is not None:
                    number, self.error = self.error, None
                elif words[:2] == ["SET", "AUTOCOMMIT"]:
                    status = AUTOCOMMIT if words[-1] == "1" else 0
                elif words[0] in ("INSERT", "UPDATE"):
                    pending.append(words[0])
                    status |= 0 if status & AUTOCOMMIT else IN_TRANSACTION
                if words[0] == "ROLLBACK" or number == 1213:
                    pending.clear()
                if words[0] == "COMMIT" or status & AUTOCOMMIT:
                    self.committed += pending
                    pending.clear()
                if words[0] in ("COMMIT", "ROLLBACK"):
                    status &= ~IN_TRANSACTION
                answer = struct.pack("<xxxHH", status, 0)
                if number is not None:
                    answer = struct.pack("<BH", 255, number) + b"#HY000no"
                send(connection, head[3] + 1, answer)

    def connect(self, *, autocommit: bool = False) -> Any:
        """Return a connection of PyMySQL."""
        return pymysql.connect(host="127.0.0.1", port=self.port, user="u", autocommit=autocommit)


def send(connection: socket.socket, number: int, body: bytes) -> None:
    """Send one packet of the protocol."""
    connection.sendall(len(body).to_bytes(3, "little") + bytes([number]) + body)


@pytest.fixture
def server() -> Generator[Server]:
    """A server where nothing was committed."""
    server = Server()
    with listening(server.talk) as port, virtual_time():
        server.port = port
        yield server


def write(connection: Any) -> None:
    """Insert and update with a cursor that is closed at once."""
    with connection.cursor() as cursor:
        cursor.execute("insert")
        cursor.execute("update")


def in_block(server: Server, *, autocommit: bool = False) -> None:
    """The connection is closed by its block."""
    with server.connect(autocommit=autocommit) as connection:
        write(connection)
        connection.commit()


def by_statement(server: Server) -> None:
    """Only the server knows that each statement commits, and its word counts."""
    with server.connect() as connection:
        connection.query("set autocommit = 1")
        write(connection)


def with_rollback(server: Server) -> None:
    """The function rolls back, and closes the connection later."""
    with closing(server.connect()) as connection:
        try:
            write(connection)
            connection.commit()
        except BaseException:
            connection.rollback()
            raise


def by_alchemy(server: Server) -> None:
    """SQLAlchemy is between."""
    engine = sqlalchemy.create_engine("mysql+pymysql://", creator=server.connect, poolclass=sqlalchemy.pool.NullPool)
    engine.dialect.initialize = lambda connection: None  # type: ignore[method-assign] # it would ask for the version
    with engine.begin() as connection:
        connection.exec_driver_sql("insert")
        connection.exec_driver_sql("update")


def caught(server: Server) -> None:
    """The function goes on after the error, and commits what came before."""
    with server.connect() as connection:
        try:
            write(connection)
        except pymysql.Error as error:
            connection.commit()
            raise RuntimeError("one of two") from error
        connection.commit()


def before(server: Server) -> None:
    """The transaction began before the function."""
    write(CURRENT.get())


NAMED: dict[str, tuple[Callable[[Server], None], str | None]] = {
    "in a block": (in_block, None),
    "with rollback()": (with_rollback, None),
    "by SQLAlchemy": (by_alchemy, None),
    "began before": (before, "still open"),
    "autocommit": (partial(in_block, autocommit=True), "been committed"),
    "SET autocommit": (by_statement, "been committed"),
}
CASES = [(name, number) for name in NAMED for number in (1205, 3572, 1213)]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_transactions(server: Server, name: str, number: int) -> None:
    """E2: after 1205 and 3572 the transaction goes on; it is repeated if the function began it, and rolled back."""
    (work, why), server.error = NAMED[name], number
    with server.connect() as connection:
        CURRENT.set(connection)
        connection.query("insert into before_it")
        if why is None:
            POLICY.call(work, server)
        else:
            with pytest.raises(pymysql.Error) as error:
                POLICY.call(work, server)
            assert why in str(error.value.__notes__)
    assert server.committed == {None: ["INSERT", "UPDATE"], "still open": [], "been committed": ["INSERT"]}[why]


def test_a_caught_error(server: Server) -> None:
    """E2: the function may have committed what came before, so it stops."""
    server.error = 1205
    with pytest.raises(RuntimeError) as error:
        POLICY.call(caught, server)
    assert "may have been committed" in str(error.value.__notes__)
    assert server.committed == ["INSERT"]
