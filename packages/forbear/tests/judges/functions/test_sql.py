"""Transactions in decorated functions: a row that was rolled back is inserted again, and no other one twice."""

import sqlite3
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import QueuePool

import forbear
from forbear.testing import virtual_time

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
FIRST, SECOND = "insert into t values (1)", "insert into t values (fail_once(2))"
CURRENT: ContextVar[Any] = ContextVar("current")
HELD = SimpleNamespace(session=None, folder={})


class Shop:
    """A database whose second statement fails once, in one attempt of a decorated function."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.calls = 0
        self.failures = 0
        self.opened = ExitStack()
        with self.connect() as db:
            db.execute("create table t (n integer)")

    def fail_once(self, value: int) -> int:
        """Return the value, but fail at first; SQLite calls this."""
        self.failures += 1
        if self.failures == 1:
            raise ValueError(value)
        return value

    def connect(self, **options: Any) -> Any:
        """Return a connection of sqlite3."""
        db: sqlite3.Connection = sqlite3.connect(self.path, timeout=0, **options)
        self.opened.callback(db.close)
        db.create_function("fail_once", 1, self.fail_once)
        return db

    def engine(self, **options: Any) -> Any:
        """Return an engine with a pool."""
        made = sqlalchemy.create_engine("sqlite://", creator=partial(self.connect, **options), poolclass=QueuePool)
        self.opened.callback(made.dispose)
        return made

    def run(self, work: Callable[[], object]) -> None:
        """Call a function with retries."""

        def counted() -> None:
            self.calls += 1
            work()

        POLICY.call(counted)

    @property
    def rows(self) -> list[int]:
        """All that was committed."""
        with closing(self.connect()) as db:
            return [n for (n,) in db.execute("select n from t order by n")]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """An empty database."""
    shop = Shop(tmp_path / "db")
    with virtual_time(), shop.opened:
        yield shop


def insert(db: Any, *texts: str) -> None:
    """Execute statements by SQLAlchemy."""
    for text in texts or (FIRST, SECOND):
        db.execute(sqlalchemy.text(text))


def in_block(shop: Shop, *, begin: bool) -> None:
    """As the documentation of SQLAlchemy begins a transaction."""
    engine = shop.engine()

    def work() -> None:
        with engine.begin() if begin else Session(engine) as db:
            insert(db)
            if not begin:
                db.commit()

    shop.run(work)


def in_helper(shop: Shop) -> None:
    """A context manager of one's own."""
    engine = shop.engine()

    @contextmanager
    def opened() -> Generator[Session]:
        session = Session(engine)
        try:
            yield session
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            session.close()

    def work() -> None:
        with opened() as session:
            insert(session)

    shop.run(work)


def scoped(shop: Shop, *, removes: bool) -> None:
    """A session that a registry keeps for the thread."""
    sessions = scoped_session(sessionmaker(shop.engine()))

    def work() -> None:
        try:
            insert(sessions)
            sessions.commit()
        except BaseException:
            sessions.rollback()
            raise
        finally:
            if removes:
                sessions.remove()

    shop.run(work)


def begin(connection: Any) -> None:
    """Begin a transaction, since the driver does not."""
    connection.exec_driver_sql("begin")


def by_recipe(shop: Shop) -> None:
    """SQLAlchemy's recipe for SQLite: the driver commits each statement, and a listener begins the transaction."""
    engine = shop.engine(isolation_level=None)
    event.listen(engine, "begin", begin)
    with_engine(shop, engine)


def with_engine(shop: Shop, engine: Any, *texts: str) -> None:
    """Insert in a transaction of an engine."""

    def work() -> None:
        with engine.begin() as db:
            insert(db, *texts)

    shop.run(work)


def from_helper() -> Any:
    """Return the session that was begun before."""
    return HELD.folder["session"]


FINDS: dict[str, Callable[[], Any]] = {
    "context variable": CURRENT.get,
    "attribute": lambda: HELD.session,
    "registry": lambda: HELD.registry.session_factory and HELD.registry(),
    "helper": from_helper,
}


def outside(shop: Shop, find: Callable[[], Any], *, rolls_back: bool) -> None:
    """A transaction that began before the function, which finds its session elsewhere."""
    HELD.registry = scoped_session(sessionmaker(shop.engine()))
    HELD.session = HELD.folder["session"] = session = HELD.registry()
    CURRENT.set(session)

    def work() -> None:
        try:
            insert(find(), SECOND)
        except BaseException:
            if rolls_back:
                find().rollback()
            raise

    try:
        insert(session, FIRST)
        shop.run(work)
        session.commit()
    finally:
        session.rollback()
        HELD.session = HELD.registry = None
        HELD.folder.clear()


def hidden(shop: Shop) -> None:
    """A connection that began before, and that nothing but a generator holds."""
    engine = shop.engine()

    def hold() -> Generator[Any]:
        with engine.begin() as db:
            insert(db, FIRST)
            while True:
                yield db

    with closing(hold()) as held:
        next(held)
        shop.run(lambda: insert(next(held), SECOND))


def caught(shop: Shop) -> None:
    """The function catches the error, commits what came before, and then raises an error of its own."""
    engine = shop.engine()

    def work() -> None:
        failed: Exception | None = None
        with engine.begin() as db:
            insert(db, FIRST)
            try:
                insert(db, SECOND)
            except OperationalError as error:
                failed = error
        if failed is not None:
            raise RuntimeError("one of two") from failed

    shop.run(work)


def plainly(shop: Shop, **options: Any) -> None:
    """Insert by sqlite3 itself."""

    def work() -> None:
        with shop.connect(**options) as db:
            db.execute(FIRST)
            db.execute(SECOND)

    shop.run(work)


def by_script(shop: Shop) -> None:
    """Insert by a script that fails."""

    def work() -> None:
        with shop.connect() as db:
            db.executescript(f"{FIRST};{SECOND}")

    shop.run(work)


def after_a_script(shop: Shop) -> None:
    """Fail after a script that worked, and close the connection."""

    def work() -> None:
        with closing(shop.connect()) as db:
            db.executescript(FIRST)
            db.execute(SECOND)

    shop.run(work)


def in_global(shop: Shop) -> None:
    """A connection that began before, two attributes away from a global."""
    HELD.folder["shop"] = SimpleNamespace(db=shop.connect())
    HELD.folder["shop"].db.execute(FIRST)
    try:
        shop.run(lambda: HELD.folder["shop"].db.execute(SECOND))
    finally:
        HELD.folder.clear()


def read_late(shop: Shop) -> None:
    """A read that fails after a write, in a transaction that began before."""
    with Session(shop.engine()) as session:
        CURRENT.set(session)
        shop.run(lambda: insert(CURRENT.get(), FIRST, "select max(n) from t where n = fail_once(1)"))


WITH = "with one as (select 1 as n) insert into t select n from one"
WORKS: dict[str, tuple[Callable[[Shop], None], str | None, list[int]]] = {
    "engine.begin()": (partial(in_block, begin=True), None, [1, 2]),
    "Session()": (partial(in_block, begin=False), None, [1, 2]),
    "a context manager": (in_helper, None, [1, 2]),
    "scoped, removed": (partial(scoped, removes=True), None, [1, 2]),
    "scoped, kept": (partial(scoped, removes=False), "begun before", []),
    "the recipe for SQLite": (by_recipe, None, [1, 2]),
    "isolation_level=None": (lambda s: with_engine(s, s.engine(isolation_level=None)), "been committed", [1]),
    "WITH": (lambda s: with_engine(s, s.engine(), WITH, f"with x as (select 2) {SECOND}"), "been committed", [1]),
    "a generator": (hidden, "still open", []),
    "a late read": (read_late, "still open", []),
    "a caught error": (caught, "been committed", [1]),
    "sqlite3": (plainly, None, [1, 2]),
    "sqlite3, isolation_level=None": (partial(plainly, isolation_level=None), "been committed", [1]),
    "executescript": (by_script, "been committed", [1]),
    "after executescript": (after_a_script, "been committed", [1]),
    "sqlite3, a global": (in_global, "still open", []),
    **{
        f"{where}, {'rolled back' if rolls_back else 'open'}": (
            partial(outside, find=find, rolls_back=rolls_back),
            "begun before" if rolls_back else "still open",
            list[int](),
        )
        for where, find in FINDS.items()
        for rolls_back in (True, False)
    },
}


@pytest.mark.parametrize("name", WORKS)
def test_transactions(shop: Shop, name: str) -> None:
    """L8: a transaction is repeated if it began in the function and was rolled back, and no other one."""
    work, why, rows = WORKS[name]
    if why is None:
        work(shop)
        assert shop.calls == 2
    else:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - of SQLAlchemy, sqlite3 or the function itself
            work(shop)
        assert why in str(caught.value.__notes__)
        assert shop.calls == 1
    assert shop.rows == rows


def test_a_lock_before_anything_was_changed(shop: Shop) -> None:
    """A connection that has changed nothing loses nothing, also one that commits each statement."""
    with closing(shop.connect(isolation_level=None)) as lock:
        lock.execute("begin immediate")
        policy = POLICY.with_on_event(lambda event: lock.execute("rollback") if lock.in_transaction else None)

        def work() -> None:
            with closing(shop.connect(isolation_level=None)) as db:
                db.execute("begin immediate")
                db.execute(FIRST)
                db.execute("commit")

        policy.call(work)
    assert shop.rows == [1]
