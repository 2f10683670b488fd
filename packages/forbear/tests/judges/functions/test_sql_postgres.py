"""Transactions of a real PostgreSQL in decorated functions: how often a row is there after a failed serialization."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import ContextVar
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

import forbear
from forbear.testing import virtual_time
from forbear_testkit.judges.postgres import Postgres, postgres_server

pytestmark = pytest.mark.soak

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
FIRST, SECOND = "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (fail_once(2))"
CURRENT: ContextVar[Any] = ContextVar("current")
PREPARED = """
CREATE TABLE t (n INT); CREATE SEQUENCE tries;
CREATE FUNCTION fail_once(n INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN
IF nextval('tries') = 1 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END IF;
RETURN n; END $$
"""


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    """The address of a database whose function `fail_once` fails once."""
    with postgres_server() as server:
        with psycopg.connect(Postgres.uri(server)) as connection:
            connection.execute(PREPARED)
        yield server.uri()


def engine_of(uri: str) -> Any:
    """Return an engine without a pool."""
    address = uri.replace("postgresql:", "postgresql+psycopg:")
    return sqlalchemy.create_engine(address, poolclass=sqlalchemy.NullPool)


def insert(db: Any, *texts: str) -> None:
    """Execute statements by SQLAlchemy."""
    for text in texts or (FIRST, SECOND):
        db.execute(sqlalchemy.text(text))


def by_engine(uri: str) -> None:
    """A connection of SQLAlchemy."""
    with engine_of(uri).begin() as db:
        insert(db)


def by_session(uri: str) -> None:
    """A session of SQLAlchemy."""
    with Session(engine_of(uri)) as db:
        insert(db)
        db.commit()


def by_psycopg(uri: str) -> None:
    """A connection that its block closes."""
    with psycopg.connect(uri) as db, db.cursor() as cursor:
        cursor.execute(FIRST)
        cursor.execute(SECOND)


def closing_psycopg(uri: str) -> None:
    """A connection that the function closes."""
    with closing(psycopg.connect(uri)) as db:
        db.execute(FIRST)
        db.execute(SECOND)
        db.commit()


def alone(uri: str) -> None:
    """A connection that commits each statement from now on."""
    with psycopg.connect(uri) as db:
        db.autocommit = True
        db.execute(FIRST)
        db.execute(SECOND)


def open_session(_: str) -> None:
    """A session that began before."""
    insert(CURRENT.get()["session"], SECOND)


def rolled_back_session(_: str) -> None:
    """A session that began before, and that the function rolls back."""
    try:
        open_session(_)
    except BaseException:
        CURRENT.get()["session"].rollback()
        raise


def open_psycopg(_: str) -> None:
    """A transaction of psycopg that began before, with a savepoint in the function."""
    with CURRENT.get()["plain"].transaction():
        CURRENT.get()["plain"].execute(SECOND)


def rolled_back_psycopg(_: str) -> None:
    """A transaction of psycopg that began before, and that the function rolls back."""
    try:
        CURRENT.get()["plain"].execute(SECOND)
    except BaseException:
        CURRENT.get()["plain"].rollback()
        raise


WORKS: dict[Callable[[str], None], str | None] = {
    by_engine: None,
    by_session: None,
    by_psycopg: None,
    closing_psycopg: None,
    alone: "committed by themselves",
    open_session: "still open",
    rolled_back_session: "begun before",
    open_psycopg: "still open",
    rolled_back_psycopg: "begun before",
}


def rows_of(uri: str) -> list[int]:
    """Return what was committed, and begin anew."""
    with psycopg.connect(uri) as db:
        rows: list[int] = [n for (n,) in db.execute("SELECT n FROM t ORDER BY n").fetchall()]
        db.execute("TRUNCATE t; ALTER SEQUENCE tries RESTART")
    return rows


@pytest.mark.parametrize("work", WORKS, ids=lambda work: str(work.__name__))
def test_transactions(uri: str, work: Callable[[str], None]) -> None:
    """L8: 40001 rolls the whole transaction back; only the function that began it is called again."""
    rows_of(uri)
    why = WORKS[work]
    with virtual_time(), Session(engine_of(uri)) as session, closing(psycopg.connect(uri)) as plain:
        CURRENT.set({"session": session, "plain": plain})
        insert(session, FIRST)
        plain.execute(FIRST)
        if why is None:
            POLICY.call(work, uri)
        else:
            with pytest.raises((psycopg.Error, DBAPIError)) as caught:
                POLICY.call(work, uri)
            assert why in str(caught.value.__notes__)
        session.rollback()
        plain.rollback()
    assert rows_of(uri) == ([1, 2] if why is None else [1] if work is alone else [])


@pytest.mark.parametrize("outside", [False, True])
def test_transactions_of_asyncio(uri: str, *, outside: bool) -> None:
    """An `AsyncSession` is judged alike."""
    rows_of(uri)

    async def work() -> None:
        engine = create_async_engine(uri.replace("postgresql:", "postgresql+psycopg:"))
        async with AsyncSession(engine) as before:

            async def write() -> None:
                if outside:
                    await CURRENT.get()["session"].execute(sqlalchemy.text(SECOND))
                    return
                async with AsyncSession(engine) as session, session.begin():
                    await session.execute(sqlalchemy.text(FIRST))
                    await session.execute(sqlalchemy.text(SECOND))

            CURRENT.set({"session": before})
            await before.execute(sqlalchemy.text(FIRST))
            try:
                await POLICY.acall(write)
            finally:
                await before.rollback()
                await engine.dispose()

    with virtual_time():
        if outside:
            with pytest.raises(DBAPIError) as caught:
                asyncio.run(work())
            assert "still open" in str(caught.value.__notes__)
        else:
            asyncio.run(work())
    assert rows_of(uri) == ([] if outside else [1, 2])
