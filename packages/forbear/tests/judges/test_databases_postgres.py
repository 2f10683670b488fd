"""SQLSTATEs and lost COMMITs of a real PostgreSQL, through psycopg and asyncpg, and the recipe of the documentation."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any, Self

import pytest

import forbear
from forbear.core.verdict import NOT_EXECUTED, PERMANENT, TRANSIENT, Kind
from forbear.testing import virtual_time
from forbear.testing.proxy import Proxy
from forbear_testkit import ROOT
from forbear_testkit.judges.postgres import Postgres, postgres_server
from forbear_testkit.lazily import Library

pytestmark = pytest.mark.soak

asyncpg: Any = Library("asyncpg")
psycopg: Any = Library("psycopg")
sqlalchemy: Any = Library("sqlalchemy")

judge, in_transaction = forbear.transient, forbear.transient.transaction
Sync = Any


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """The server of all tests."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def rows(server: Postgres) -> Iterator[Sync]:
    """A connection that commits each statement, to a server with the rows 1 and 2 in the table `t`."""
    with psycopg.connect(server.uri(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t; CREATE TABLE t (id INT PRIMARY KEY, n INT)")
        connection.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
        yield connection


def _serialization(rows: Sync, do: Callable[[str], object]) -> None:
    do("BEGIN ISOLATION LEVEL REPEATABLE READ")
    do("SELECT * FROM t")
    rows.execute("UPDATE t SET n = 1")
    do("UPDATE t SET n = 2")


def _at_commit(rows: Sync, do: Callable[[str], object]) -> None:
    """Write skew, which is noticed when the second transaction commits."""
    rows.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    do("BEGIN ISOLATION LEVEL SERIALIZABLE")
    do("UPDATE t SET n = (SELECT sum(n) FROM t) WHERE id = 1")
    rows.execute("UPDATE t SET n = (SELECT sum(n) FROM t) WHERE id = 2")
    rows.execute("COMMIT")
    do("COMMIT")


def _deadlock(rows: Sync, do: Callable[[str], object]) -> None:
    rows.execute("BEGIN")
    rows.execute("SET LOCAL deadlock_timeout = '1min'")  # so that the other transaction notices
    rows.execute("UPDATE t SET n = 1 WHERE id = 1")
    do("BEGIN")
    do("UPDATE t SET n = 1 WHERE id = 2")
    waiting = threading.Thread(target=rows.execute, args=("UPDATE t SET n = 1 WHERE id = 2",))
    waiting.start()
    try:
        do("UPDATE t SET n = 1 WHERE id = 1")
    finally:
        waiting.join()
        rows.execute("ROLLBACK")


def _locked(rows: Sync, do: Callable[[str], object]) -> None:
    rows.execute("BEGIN")
    rows.execute("SELECT * FROM t FOR UPDATE")
    try:
        do("SELECT * FROM t FOR UPDATE NOWAIT")
    finally:
        rows.execute("ROLLBACK")


def _too_slow(rows: Sync, do: Callable[[str], object]) -> None:
    do("SET statement_timeout = '10ms'")
    do("SELECT pg_sleep(60)")


def _terminated(rows: Sync, do: Callable[[str], object]) -> None:
    do("SET application_name = 'victim'")
    rows.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'victim'")
    do("SELECT 1")


def _read_only(rows: Sync, do: Callable[[str], object]) -> None:
    do("BEGIN READ ONLY")
    do("UPDATE t SET n = 1")


def _after_a_failure(rows: Sync, do: Callable[[str], object]) -> None:
    do("BEGIN")
    with suppress(Exception):
        do("SELECT 1 / 0")
    do("SELECT 1")


def _twice(rows: Sync, do: Callable[[str], object]) -> None:
    do("INSERT INTO t VALUES (1, 1)")


TROUBLE: list[tuple[str | None, Callable[[Sync, Callable[[str], object]], None], Kind, Kind]] = [
    ("40001", _serialization, Kind.TRANSIENT, Kind.NOT_EXECUTED),
    ("40001", _at_commit, Kind.TRANSIENT, Kind.NOT_EXECUTED),
    ("40P01", _deadlock, Kind.TRANSIENT, Kind.NOT_EXECUTED),
    ("55P03", _locked, Kind.TRANSIENT, Kind.NOT_EXECUTED),
    ("57014", _too_slow, Kind.PERMANENT, Kind.PERMANENT),
    ("25006", _read_only, Kind.PERMANENT, Kind.PERMANENT),
    ("25P02", _after_a_failure, Kind.PERMANENT, Kind.PERMANENT),
    ("23505", _twice, Kind.PERMANENT, Kind.PERMANENT),
    ("57P01", _terminated, Kind.TRANSIENT, Kind.TRANSIENT),
]
trouble = pytest.mark.parametrize(
    ("state", "provoke", "around", "within"), TROUBLE, ids=[f"{row[0]}{row[1].__name__}" for row in TROUBLE]
)


@trouble
def test_errors_of_psycopg_have_their_verdict(
    server: Postgres, rows: Sync, state: str, provoke: Any, around: Kind, within: Kind
) -> None:
    """The server's own errors, as psycopg raises them."""
    with psycopg.connect(server.uri(), autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            provoke(rows, connection.execute)
        assert caught.value.sqlstate == state
        assert (judge(caught.value).kind, in_transaction(caught.value).kind) == (around, within)


@trouble
async def test_errors_of_asyncpg_have_their_verdict(
    server: Postgres, rows: Sync, state: str, provoke: Any, around: Kind, within: Kind
) -> None:
    """The same errors as asyncpg raises them."""
    connection = await asyncpg.connect(server.uri())
    loop = asyncio.get_running_loop()

    def do(statement: str) -> None:
        asyncio.run_coroutine_threadsafe(connection.execute(statement), loop).result()

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)) as caught:
        await asyncio.to_thread(provoke, rows, do)
    if provoke is not _terminated:  # asyncpg may notice the closed connection first
        assert getattr(caught.value, "sqlstate", None) == state
    assert (judge(caught.value).kind, in_transaction(caught.value).kind) == (around, within)
    connection.terminate()


async def _refused(address: str) -> list[Exception]:
    """Return the errors of both drivers for an address that cannot be connected to."""
    with pytest.raises(psycopg.OperationalError) as of_psycopg:
        psycopg.connect(address)
    with pytest.raises((asyncpg.PostgresError, OSError)) as of_asyncpg:
        await asyncpg.connect(address)
    return [of_psycopg.value, of_asyncpg.value]


async def test_connections_that_are_not_made(server: Postgres, rows: Sync) -> None:
    """psycopg has no SQLSTATE for them; it says in words why the server refused."""
    rows.execute("DROP ROLE IF EXISTS crowd; CREATE ROLE crowd LOGIN CONNECTION LIMIT 0")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        for error in await _refused(server.uri(taken.getsockname()[1])):
            assert (judge(error), in_transaction(error)) == (TRANSIENT, NOT_EXECUTED)
    for error in await _refused(server.uri(user="crowd")):
        assert (judge(error).kind, in_transaction(error).kind) == (Kind.TRANSIENT, Kind.NOT_EXECUTED)
    for error in [*await _refused(server.uri(database="none")), *await _refused(server.uri(user="nobody"))]:
        assert judge(error) is in_transaction(error) is PERMANENT


def _is_commit(request: bytes) -> bool:
    return b"COMMIT" in request.upper()


@pytest.mark.parametrize("lost", ["request", "response"])
async def test_a_lost_commit(server: Postgres, rows: Sync, lost: str) -> None:
    """Both drivers raise the same error whether the transaction was committed or not: unknown."""

    def cut(request: bytes, response: bytes | None) -> bool:
        return _is_commit(request) and (response is None) == (lost == "request")

    with Proxy(("127.0.0.1", server.port), cut) as proxy:
        with psycopg.connect(server.uri(proxy.port)) as connection:
            connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
            with pytest.raises(psycopg.OperationalError) as of_psycopg:
                connection.commit()
        other = await asyncpg.connect(server.uri(proxy.port))
        with pytest.raises((asyncpg.PostgresError, OSError)) as of_asyncpg:
            await _update(other)
    for error in (of_psycopg.value, of_asyncpg.value):
        assert judge(error) == in_transaction(error) == TRANSIENT
    expected = 1 if lost == "response" else 0
    assert rows.execute("SELECT n FROM t ORDER BY id").fetchall() == [(expected,), (expected,)]


async def _update(connection: Any) -> None:
    async with connection.transaction():
        await connection.execute("UPDATE t SET n = n + 1 WHERE id = 2")


async def test_a_procedure_that_commits_inside(server: Postgres, rows: Sync) -> None:
    """40001 after an inner COMMIT proves nothing; asyncpg and SQLAlchemy know that the statement was a CALL."""
    rows.execute(
        "CREATE OR REPLACE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET n = n + 1; COMMIT; "
        "RAISE SQLSTATE '40001'; END $$"
    )
    connection = await asyncpg.connect(server.uri())
    with pytest.raises(asyncpg.SerializationError) as of_asyncpg:
        await connection.execute("CALL p()")
    await connection.close()
    engine = sqlalchemy.create_engine(server.uri().replace("postgresql:", "postgresql+psycopg:"))
    autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
    with autocommit.connect() as other, pytest.raises(sqlalchemy.exc.OperationalError) as of_sqlalchemy:
        other.execute(sqlalchemy.text("CALL p()"))
    engine.dispose()
    assert rows.execute("SELECT n FROM t WHERE id = 1").fetchone() == (2,)
    assert in_transaction(of_asyncpg.value) == in_transaction(of_sqlalchemy.value) == TRANSIENT


class Line:
    """A function for a proxy that loses what the test wants: `lose(request, response)`, which may be changed."""

    def __init__(self) -> None:
        self.lose: Callable[[bytes, bytes | None], bool] = lambda request, response: False

    def __call__(self, request: bytes, response: bytes | None) -> bool:
        return self.lose(request, response)


@pytest.fixture
def line() -> Line:
    """The function of the proxy between recipe and server, which loses nothing until a test says so."""
    return Line()


@pytest.fixture
def recipe(server: Postgres, rows: Sync, line: Line) -> Iterator[dict[str, Any]]:
    """The names of the documentation's recipe, connected through a proxy."""
    page = ROOT.joinpath("docs/read_modify_write.md").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "def deposit" in block)
    rows.execute("DROP TABLE IF EXISTS account, applied")
    with Proxy(("127.0.0.1", server.port), line) as proxy:
        names: dict[str, Any] = {
            "forbear": forbear,
            "dialect": "postgresql+psycopg://",
            "connect": lambda: psycopg.connect(server.uri(proxy.port)),
        }
        exec(block.partition("\ndeposit(")[0], names)
        yield names
        names["engine"].dispose()


@pytest.mark.parametrize("lost", ["request", "response"])
def test_the_recipe_finds_its_token(recipe: dict[str, Any], rows: Sync, line: Line, lost: str) -> None:
    """A deposit whose COMMIT was lost is made exactly once, whether the COMMIT had arrived or not."""
    writing, cuts = False, 0

    def lose(request: bytes, response: bytes | None) -> bool:
        nonlocal writing, cuts
        writing = writing or b"UPDATE account" in request
        if not writing or not _is_commit(request) or (response is None) != (lost == "request"):
            return False
        writing, cuts = False, cuts + 1
        return cuts < 3

    line.lose = lose
    with virtual_time(seed=1):
        for _ in range(3):
            recipe["deposit"]("ada", 5)
    line.lose = lambda request, response: False
    assert cuts == (5 if lost == "request" else 3)  # a lost request is sent again
    assert rows.execute("SELECT balance FROM account").fetchone() == (15,)
    assert rows.execute("SELECT count(*) FROM applied").fetchone() == (3,)


@pytest.mark.parametrize("seed", range(5))
def test_the_recipe_over_a_bad_line(recipe: dict[str, Any], rows: Sync, line: Line, seed: int) -> None:
    """With anything lost at any time and four writers, no deposit is made twice, and none that ended is missing."""
    dice = Random(seed)
    line.lose = lambda request, response: dice.random() < 0.04
    outcomes: list[bool | None] = []

    def deposits() -> None:
        with virtual_time(seed=seed):
            for _ in range(20):
                try:
                    recipe["deposit"]("ada", 1)
                    outcomes.append(True)
                except Exception as error:
                    report = forbear.report(error)
                    outcomes.append(None if report is not None and report.maybe_done else False)

    writers = [threading.Thread(target=deposits) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    line.lose = lambda request, response: False
    (balance,) = rows.execute("SELECT balance FROM account").fetchone() or (-1,)
    assert rows.execute("SELECT count(*) FROM applied").fetchone() == (balance,)
    assert outcomes.count(True) <= balance <= outcomes.count(True) + outcomes.count(None)
    assert outcomes.count(True) > 40


def test_a_commit_that_arrives_late(recipe: dict[str, Any], server: Postgres, rows: Sync) -> None:
    """The connection is lost first, and the transaction commits while the recipe already writes again."""
    engine, begun = recipe["engine"], list[Sync]()

    class Slow:
        """The recipe's engine, whose second transaction is lost before it is committed."""

        def __init__(self) -> None:
            self.count = 0

        def begin(self) -> Any:
            self.count += 1
            return _Lost(server, begun) if self.count == 2 else engine.begin()

    recipe["engine"] = Slow()
    token: list[str] = []
    waiting = threading.Thread(target=_commit_when_waited_for, args=(rows, begun, token))
    waiting.start()
    with virtual_time(seed=1):
        value = recipe["deposit"]("ada", 5)
    waiting.join()
    recipe["engine"] = engine
    assert value["balance"] == 5
    assert rows.execute("SELECT balance, version FROM account").fetchone() == (5, 2)
    assert token == ["waited"]


class _Lost:
    """A transaction that executes its statements over a connection of its own, and is lost before it commits."""

    def __init__(self, server: Postgres, begun: list[Sync]) -> None:
        self.connection = psycopg.connect(server.uri())
        begun.append(self.connection)

    def __enter__(self) -> Self:
        return self

    def execute(self, statement: Any, values: dict[str, Any]) -> Any:
        return self.connection.execute(re.sub(r":(\w+)", r"%(\1)s", str(statement)).encode(), values)

    def __exit__(self, *_: object) -> None:
        raise ConnectionResetError("the connection was lost")


def _commit_when_waited_for(rows: Sync, begun: list[Sync], token: list[str]) -> None:
    """Commit the lost transaction once another one waits for its token."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO applied%'"
    while not begun or rows.execute(query).fetchone() == (0,):
        pass
    token.append("waited")
    begun[0].commit()
    begun[0].close()
