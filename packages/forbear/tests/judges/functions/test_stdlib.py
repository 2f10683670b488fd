"""smtplib, sqlite3 and xmlrpc in decorated functions: how often a message is accepted, and a row inserted."""

import smtplib
import socket
import sqlite3
import xmlrpc.client
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.wire import Answer, Wire, reply

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
ANSWERS = {b"EHLO": b"250 here", b"MAIL": b"250 ok", b"RCPT": b"250 ok", b"DATA": b"354 go", b"QUIT": b"221 bye"}


class Mail:
    """A server of SMTP: it accepts messages, and at `stage` it answers `answer` once, or closes without one."""

    def __init__(self, stage: bytes, answer: bytes = b"") -> None:
        self.faults = {stage: answer}
        self.accepted = 0

    def talk(self, connection: socket.socket) -> None:
        """Answer each command of a connection."""
        connection.sendall(b"220 here\r\n")
        with connection.makefile("rb") as lines:
            for line in lines:
                command = line[:4].upper()
                answer = self.answer(connection, command, ANSWERS.get(command, b"250 ok"))
                if answer.startswith(b"354"):
                    while next(lines) != b".\r\n":
                        pass
                    self.accepted += not self.faults.get(b".")
                    answer = self.answer(connection, b".", b"250 accepted")
                if not answer:
                    return

    def answer(self, connection: socket.socket, stage: bytes, usual: bytes) -> bytes:
        """Answer a command, and return the answer; without one the connection ends."""
        answer = self.faults.pop(stage, usual)
        if answer:
            connection.sendall(answer + b"\r\n")
        else:
            connection.shutdown(socket.SHUT_RDWR)
        return answer


def send(port: int) -> None:
    """Send a message in a session of its own."""
    with smtplib.SMTP("127.0.0.1", port, local_hostname="localhost", timeout=20) as session:
        session.sendmail("a@example.com", ["b@example.com"], b"Subject: hello\r\n\r\nhello\r\n")


def send_by_steps(port: int) -> None:
    """Send a message as those do that need options of MAIL and RCPT: command by command."""
    with smtplib.SMTP("127.0.0.1", port, local_hostname="localhost", timeout=20) as session:
        session.ehlo()
        message = "Subject: hello\r\n\r\nhello\r\n"
        steps = (session.mail, "a@example.com"), (session.rcpt, "b@example.com"), (session.data, message)
        for command, argument in steps:
            code, text = command(argument)
            if code != 250:
                raise smtplib.SMTPResponseException(code, text)


@pytest.mark.parametrize("sender", [send, send_by_steps])
@pytest.mark.parametrize(
    ("stage", "answer", "accepted", "sessions"),
    [
        (b"EHLO", b"", 1, 2),
        (b"MAIL", b"", 1, 2),
        (b"MAIL", b"451 later", 1, 2),
        (b"RCPT", b"", 1, 2),
        (b"RCPT", b"450 busy", 1, 2),
        (b"DATA", b"451 later", 1, 2),
        (b"DATA", b"", 0, 1),  # the answer to DATA is lost: nobody can tell how far it got
        (b".", b"452 full", 1, 2),
        (b".", b"", 1, 1),  # the message was accepted, and the response is lost
        (b"QUIT", b"500 what", 1, 1),
    ],
    ids=str,
)
def test_mail(stage: bytes, answer: bytes, accepted: int, sessions: int, sender: Callable[[int], None]) -> None:
    """A message is sent again if the server has not taken it, and is never accepted twice."""
    server, begun = Mail(stage, answer), list[int]()

    def work() -> None:
        begun.append(1)
        sender(port)

    with listening(server.talk) as port, virtual_time():
        if sessions == 2:
            POLICY.call(work)
        else:
            with pytest.raises((smtplib.SMTPException, OSError)) as caught:
                POLICY.call(work)
            assert "[unsafe]" in str(caught.value.__notes__)
    assert (server.accepted, len(begun)) == (accepted, sessions)


def test_mail_that_the_user_vouches_for() -> None:
    """A name in `safe` counts, and the note has it ready to paste."""
    for safe, accepted in (((), 1), ("smtp.sendmail", 2)):
        server = Mail(b".")
        with listening(server.talk) as port, virtual_time():
            policy = POLICY.with_changes(safe=safe)
            if safe:
                policy.call(send, port)
            else:
                with pytest.raises(smtplib.SMTPServerDisconnected) as caught:
                    policy.call(send, port)
                assert 'say so: safe="smtp.sendmail"' in str(caught.value.__notes__)
        assert server.accepted == accepted


@pytest.fixture
def locked(tmp_path: Path) -> Generator[sqlite3.Connection]:
    """A connection that has locked a database, whose path is its `main`; the first failure of a policy unlocks it."""
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as lock:
        lock.execute("create table t (n integer)")
        lock.execute("begin immediate")
        yield lock


Work = Callable[[sqlite3.Connection], object]


def commit_late(db: sqlite3.Connection) -> None:
    """Insert and commit, without a rollback."""
    db.execute("insert into t values (1)")
    db.commit()


def insert_in_transaction(db: sqlite3.Connection) -> None:
    """Insert in a transaction that is rolled back if it fails."""
    with db:
        db.execute("insert into t values (1)")


def insert_through_cursor(db: sqlite3.Connection) -> None:
    """Insert by a cursor."""
    cursor = db.cursor()
    with db:
        cursor.execute("insert into t values (1)")


class Store:
    """An object that keeps its connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def add(self) -> None:
        """Insert without a rollback."""
        self.db.execute("insert into t values (1)")


def add_to_store(db: sqlite3.Connection) -> None:
    """Insert through an object that keeps the connection."""
    Store(db).add()


@pytest.mark.parametrize(
    ("work", "options", "inside", "why"),
    [
        (insert_in_transaction, {}, True, None),
        (insert_through_cursor, {}, True, None),
        (insert_in_transaction, {}, False, "begun before the function"),
        (commit_late, {}, True, "still open"),
        (commit_late, {}, False, "still open"),
        (commit_late, {"isolation_level": None}, True, "committed by themselves"),  # L8
        (add_to_store, {}, True, "still open"),
    ],
)
def test_sqlite(locked: sqlite3.Connection, work: Work, options: dict[str, Any], inside: bool, why: str | None) -> None:
    """L8: a locked database is tried again if the function's own transaction was rolled back, and only then."""
    (_, _, path), calls = locked.execute("pragma database_list").fetchone(), list[int]()

    def run(db: sqlite3.Connection | None) -> None:
        calls.append(1)
        work(db or connect())

    def connect() -> sqlite3.Connection:
        db: sqlite3.Connection = sqlite3.connect(path, timeout=0, **options)
        db.executescript("create temp table changed (n integer); insert into changed values (1)")
        ends.callback(db.close)
        return db

    policy = POLICY.with_on_event(lambda event: locked.execute("rollback") if locked.in_transaction else None)
    with virtual_time(), ExitStack() as ends:
        if why is None:
            policy.call(run, None)
        else:
            with pytest.raises(sqlite3.OperationalError) as caught:
                policy.call(run, None if inside else connect())
            assert why in str(caught.value.__notes__)
    assert len(calls) == (2 if why is None else 1)
    assert locked.execute("select count(*) from t").fetchone() == (1 if why is None else 0,)


FAULT = xmlrpc.client.dumps(xmlrpc.client.Fault(1, "no")).encode()


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        (reply(500), 1),
        (reply(200, b"<"), 1),
        (reply(200, FAULT), 1),
        (reply(200, b"<", length=100, end="close"), 1),
        (Answer(end="close"), 2),  # xmlrpc itself sends the second one
    ],
    ids=["500", "no XML", "fault", "half", "lost"],
)
def test_a_call_over_xmlrpc(answer: Answer, requests: int) -> None:
    """A procedure that may have run is not called again, whatever is wrong with the response."""
    calls = list[int]()
    with Wire(answer, *[answer] * (requests - 1), reply(200)) as wire, virtual_time():

        def add() -> object:
            calls.append(1)
            with xmlrpc.client.ServerProxy(f"{wire.url}/rpc") as server:
                return server.add(1)

        with pytest.raises(Exception) as caught:  # noqa: PT011 - of xmlrpc, of expat or of the system
            POLICY.call(add)
    assert (len(calls), len(wire.seen)) == (1, requests)
    assert f'safe="POST {wire.url}/rpc"' in caught.value.__notes__[0]


def test_xmlrpc_without_a_server() -> None:
    """A refused connection proves that nothing was sent."""
    calls = list[int]()
    with Wire() as wire:
        pass

    def add() -> object:
        calls.append(1)
        with xmlrpc.client.ServerProxy(f"{wire.url}/rpc") as server:
            return server.add(1)

    with virtual_time(), pytest.raises(ConnectionRefusedError):
        POLICY.call(add)
    assert len(calls) == 3
