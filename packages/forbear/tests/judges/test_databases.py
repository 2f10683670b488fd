"""Verdicts on errors of databases, by SQLSTATE, number and label, as the real libraries make and raise them."""

import socket
import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import forbear
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT
from forbear.testing import virtual_time
from forbear_testkit.clients.listen import listening
from forbear_testkit.judges.rows import DATABASES, Row
from forbear_testkit.lazily import Library

asyncpg: Any = Library("asyncpg")
psycopg: Any = Library("psycopg")
pymongo: Any = Library("pymongo")
pymysql: Any = Library("pymysql")
sqlalchemy: Any = Library("sqlalchemy")

judge, in_transaction = forbear.transient, forbear.transient.transaction


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port without a listener; it stays bound, so that no other test gets it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def deaf() -> Iterator[int]:
    """A port where each connection is closed at once."""
    with listening(lambda connection: connection.close()) as port:
        yield port


@pytest.mark.parametrize("row", DATABASES, ids=lambda row: f"{row.kind}-{row.name}")
def test_errors_of_databases_have_their_verdict(row: Row) -> None:
    """Around a function the outcome stays unknown; around a transaction, some errors prove that nothing changed."""
    assert judge(row.make()) == row.around
    assert in_transaction(row.make()) == row.in_transaction


def test_psycopg_refused(nobody: int) -> None:
    """A transaction that got no connection never began, although psycopg has no SQLSTATE for it."""
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(f"host=127.0.0.1 port={nobody}")
    assert judge(caught.value) is not PERMANENT
    assert (judge(caught.value), in_transaction(caught.value)) == (TRANSIENT, NOT_EXECUTED)


def test_psycopg_unknown_host(deaf: int) -> None:
    """Neither did one whose server has no address, or hangs up while it connects."""
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect("host=nobody.invalid")
    assert (judge(caught.value), in_transaction(caught.value)) == (TRANSIENT, NOT_EXECUTED)
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(f"host=127.0.0.1 port={deaf}")
    assert (judge(caught.value), in_transaction(caught.value)) == (TRANSIENT, NOT_EXECUTED)


async def test_asyncpg_refused(nobody: int, deaf: int) -> None:
    """asyncpg raises Python's own error; a connection that breaks while it is made is judged by its SQLSTATE."""
    with pytest.raises(ConnectionRefusedError) as refused:
        await asyncpg.connect(host="127.0.0.1", port=nobody, user="a", database="a", ssl=False)
    assert (judge(refused.value), in_transaction(refused.value)) == (TRANSIENT, NOT_EXECUTED)
    with pytest.raises(asyncpg.ConnectionDoesNotExistError) as lost:
        await asyncpg.connect(host="127.0.0.1", port=deaf, user="a", database="a", ssl=False)
    assert judge(lost.value) == in_transaction(lost.value) == TRANSIENT


def test_pymysql_over_sockets(nobody: int, deaf: int) -> None:
    """2003 is a connection that was not made, 2013 one that was lost."""
    with pytest.raises(pymysql.err.OperationalError) as refused:
        pymysql.connect(host="127.0.0.1", port=nobody)
    assert (judge(refused.value), in_transaction(refused.value)) == (TRANSIENT, NOT_EXECUTED)
    with pytest.raises(pymysql.err.OperationalError) as lost:
        pymysql.connect(host="127.0.0.1", port=deaf)
    assert judge(lost.value) == in_transaction(lost.value) == TRANSIENT


def test_pymysql_cleans_up() -> None:
    """The rollback over a connection that was lost fails, too; the failure before it counts, as an unknown outcome."""
    lost = pymysql.connect(host="127.0.0.1", defer_connect=True)
    for number, expected in ((2013, TRANSIENT), (2003, TRANSIENT), (1062, PERMANENT)):
        with pytest.raises(pymysql.err.InterfaceError) as caught:
            _roll_back_after(lost, number)
        assert judge(caught.value) == in_transaction(caught.value) == expected
    with pytest.raises(pymysql.err.InterfaceError) as caught:
        lost.rollback()
    assert judge(caught.value) is PERMANENT


def _roll_back_after(connection: Any, number: int) -> None:
    try:
        raise pymysql.err.OperationalError(number, "x")
    except pymysql.err.OperationalError:
        connection.rollback()


def test_pymongo_without_a_server(nobody: int) -> None:
    """No server was selected in time."""
    with (
        pymongo.MongoClient(f"mongodb://127.0.0.1:{nobody}", serverSelectionTimeoutMS=1) as client,
        pytest.raises(pymongo.errors.ServerSelectionTimeoutError) as caught,
    ):
        client.admin.command("ping")
    assert judge(caught.value) == in_transaction(caught.value) == TRANSIENT


def test_a_busy_sqlite(tmp_path: str) -> None:
    """A locked file is transient, also through SQLAlchemy. The transaction stays open: nothing says it was undone."""
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/db", connect_args={"timeout": 0})
    with sqlite3.connect(f"{tmp_path}/db", isolation_level=None) as owner:
        owner.execute("CREATE TABLE t (n)")
        owner.execute("BEGIN EXCLUSIVE")
        with pytest.raises(sqlalchemy.exc.OperationalError) as busy, engine.begin() as connection:
            connection.execute(sqlalchemy.text("INSERT INTO t VALUES (1)"))
        owner.execute("ROLLBACK")
        with pytest.raises(sqlalchemy.exc.OperationalError) as wrong, engine.begin() as connection:
            connection.execute(sqlalchemy.text("INSERT INTO nothing VALUES (1)"))
    owner.close()
    engine.dispose()
    assert judge(busy.value) == in_transaction(busy.value) == TRANSIENT
    assert judge(wrong.value) is PERMANENT


def test_a_pool_without_a_free_connection() -> None:
    """SQLAlchemy's own error for a queue that took too long."""
    connect: Any = partial(sqlite3.connect, ":memory:")
    pool = sqlalchemy.QueuePool(connect, pool_size=1, max_overflow=0, timeout=0)
    held = pool.connect()
    with pytest.raises(sqlalchemy.exc.TimeoutError) as caught:
        pool.connect()
    held.close()
    pool.dispose()
    assert in_transaction(caught.value) is NOT_EXECUTED


def test_a_refusal_after_a_loss_proves_nothing() -> None:
    """A function connected again after it lost its connection, and was refused: it may have been executed before."""
    with pytest.raises(ConnectionRefusedError) as caught:
        _connects_again()
    assert in_transaction(caught.value) == TRANSIENT


def _connects_again() -> None:
    try:
        raise psycopg.OperationalError("server closed the connection unexpectedly")
    except psycopg.OperationalError:
        raise ConnectionRefusedError from None


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_transaction_is_run_again(repeatable: bool) -> None:
    """With `transaction`, a rolled-back transaction is repeated even by a policy that repeats no doubt."""
    errors: list[Exception] = [psycopg.errors.SerializationFailure(), psycopg.errors.DeadlockDetected()]
    policy = forbear.retry(on=forbear.transient.transaction, repeatable=repeatable)
    with virtual_time(seed=1):
        assert policy.call(_fails_with, errors) == "done"


def test_a_function_is_not_run_again_without_proof() -> None:
    """Without it, `repeatable=False` stops: the function may have sent something before."""
    policy = forbear.retry(on=forbear.transient, repeatable=False)
    with pytest.raises(psycopg.errors.SerializationFailure) as caught, virtual_time(seed=1):
        policy.call(_fails_with, [psycopg.errors.SerializationFailure()])
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE


def _fails_with(errors: list[Exception]) -> str:
    if errors:
        raise errors.pop()
    return "done"
