"""The table for commands, calls of AWS and SQL: how often a server executes what a function sends."""

import sqlite3
import warnings
from collections.abc import Callable, Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import boto3
import botocore.config
import psycopg
import pytest
import redis
import redis.asyncio
import requests
import sqlalchemy
import valkey
import valkey.asyncio
from botocore.exceptions import BotoCoreError
from sqlalchemy import event

import forbear
from forbear.events import Reason
from forbear.evidence.sent import Sent, Statement
from forbear.judges.arguments import Arguments
from forbear.judges.data_facts import sql_facts
from forbear.judges.functions import row_of
from forbear.testing import virtual_time
from forbear.testing.proxy import Proxy
from forbear.testing.valkey import valkey_server
from forbear_testkit.clients.redis.proxy import HANG, once
from forbear_testkit.clients.redis.proxy import proxy as hanging_proxy
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.evidence.forms import FORMS, run_async

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)


def text_of(error: BaseException | None) -> str:
    """Return the text of the report that says why a run stopped at a doubt."""
    report = forbear.report(error)
    assert report is not None
    assert report.reason is Reason.UNSAFE
    return report.text


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    """The socket of a real Valkey."""
    with valkey_server() as path:
        yield path


@pytest.fixture
def empty(server: str) -> str:
    """The socket of a Valkey without keys."""
    with redis.Redis(unix_socket_path=server) as plain:
        plain.flushall()
    return server


class Loser:
    """Loses the first response to a command that has this word."""

    def __init__(self, word: bytes) -> None:
        self.word = word
        self.lost = False

    def __call__(self, request: bytes, response: bytes | None) -> bool:
        cut = response is not None and not self.lost and self.word in request
        self.lost = self.lost or cut
        return cut


def client(library: Any, port: int) -> Any:
    """Return a client that sends nothing by itself, and does not retry."""
    retry: Any = import_module(f"{library.__name__}.retry")
    backoff: Any = import_module("redis.backoff")
    kind = getattr(library, "Redis", None) or library.Valkey
    options = {"protocol": 2, "retry": retry.Retry(backoff.NoBackoff(), 0), "lib_name": None, "lib_version": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return kind(port=port, **options)


COMMANDS: dict[str, tuple[bytes, Callable[[Any], object], bool]] = {
    "GET": (b"GET", lambda r: r.get("k"), True),
    "SET": (b"SET", lambda r: r.set("k", "v"), True),
    "INCR": (b"INCR", lambda r: r.incr("k"), False),
    "LPUSH": (b"LPUSH", lambda r: r.lpush("k", "v"), False),
    "V1 SET NX": (b"SET", lambda r: r.set("k", "v", nx=True), False),
    "V1 SADD": (b"SADD", lambda r: r.sadd("k", "v"), False),
    "V1 HSETNX": (b"HSETNX", lambda r: r.hsetnx("k", "f", "v"), False),
    "WATCH": (b"WATCH", lambda r: r.pipeline().watch("k"), True),
    "pipeline of reads": (b"GET", lambda r: r.pipeline(transaction=False).get("k").get("l").execute(), True),
    "pipeline with INCR": (b"INCR", lambda r: r.pipeline(transaction=False).get("k").incr("l").execute(), False),
    "transaction of SET": (b"EXEC", lambda r: r.pipeline().set("k", "1").set("l", "2").execute(), True),
    "transaction with INCR": (b"EXEC", lambda r: r.pipeline().set("k", "1").incr("l").execute(), False),
}


@pytest.mark.parametrize("library", [redis, valkey], ids=lambda library: str(library.__name__))
@pytest.mark.parametrize("name", COMMANDS)
def test_commands(name: str, library: Any, empty: str) -> None:
    """V1: commands whose value is a claim stop, as do those that count; reads and plain writes are repeated."""
    word, work, repeated = COMMANDS[name]
    form = list(FORMS.values())[len(name) % 3]
    calls = list[int]()

    with Proxy(empty, Loser(word)) as proxy, client(library, proxy.port) as connection, virtual_time():

        def function() -> object:
            calls.append(1)
            return work(connection)

        if repeated:
            form(POLICY, function)
        else:
            with pytest.raises((redis.ConnectionError, valkey.ConnectionError)) as caught:
                form(POLICY, function)
            assert "could do harm" not in text_of(caught.value)
    assert len(calls) == (2 if repeated else 1)


def test_commands_of_asyncio(server: str) -> None:
    """The asyncio client's INCR is executed once, too."""
    with Proxy(server, Loser(b"INCR")) as proxy, virtual_time():

        async def count() -> object:
            async with client(redis.asyncio, proxy.port) as connection:
                return await connection.incr("asyncio")

        with pytest.raises(redis.ConnectionError):
            run_async("decorated", POLICY, count)
    with redis.Redis(unix_socket_path=server) as plain:
        assert plain.get("asyncio") == b"1"


@pytest.mark.parametrize(("safe", "amount"), [("INCRBY", 1), ("INCRBY", 2), ("incr", 1)])
def test_the_users_word_for_a_command(server: str, safe: str, amount: int) -> None:
    """`safe="INCRBY"`, the name in the note, lets the command be repeated; INCR covers what `incr` sends."""
    with Proxy(server, Loser(b"INCR")) as proxy, client(redis, proxy.port) as connection, virtual_time():
        assert POLICY.with_changes(safe=safe).call(connection.incr, f"{safe} {amount}", amount) == 2 * amount


def add_one(connection: Any, meanwhile: Callable[[], object]) -> None:
    """Increment `watched` under WATCH, and a second key by itself."""
    with connection.pipeline() as pipe:
        pipe.watch("watched")
        value = int(pipe.get("watched") or 0)
        meanwhile()
        pipe.multi()
        pipe.set("watched", value + 1).execute()


async def add_one_async(connection: Any, meanwhile: Callable[[], object]) -> None:
    """Do the same with asyncio."""
    async with connection, connection.pipeline() as pipe:
        await pipe.watch("watched")
        value = int(await pipe.get("watched") or 0)
        meanwhile()
        pipe.multi()
        await pipe.set("watched", value + 1).execute()


WATCHERS: dict[str, Callable[[int, Callable[[], object]], object]] = {
    "redis": lambda port, meanwhile: POLICY.call(add_one, client(redis, port), meanwhile),
    "valkey": lambda port, meanwhile: POLICY.call(add_one, client(valkey, port), meanwhile),
    "redis.asyncio": lambda port, meanwhile: run_async(
        "decorated", POLICY, lambda: add_one_async(client(redis.asyncio, port), meanwhile)
    ),
    "valkey.asyncio": lambda port, meanwhile: run_async(
        "decorated", POLICY, lambda: add_one_async(client(valkey.asyncio, port), meanwhile)
    ),
}


@pytest.mark.parametrize("name", WATCHERS)
def test_a_transaction_under_watch(server: str, name: str) -> None:
    """If the response to EXEC is lost, the next attempt would read what this one wrote: 1 is added once."""
    with redis.Redis(unix_socket_path=server) as plain, Proxy(server, Loser(b"EXEC")) as proxy, virtual_time():
        plain.delete("watched")
        with pytest.raises((redis.WatchError, valkey.WatchError)) as caught:
            WATCHERS[name](proxy.port, int)
        assert "depends on a version" in text_of(caught.value)
        assert plain.get("watched") == b"1"


@pytest.mark.parametrize("name", WATCHERS)
def test_a_conflict_under_watch(server: str, name: str) -> None:
    """A conflict executes nothing, and the next attempt reads the new value: both writers have added 1."""
    with redis.Redis(unix_socket_path=server) as plain, Proxy(server, Loser(b"nothing")) as proxy, virtual_time():
        plain.delete("watched")
        WATCHERS[name](proxy.port, lambda: plain.get("watched") or plain.incr("watched"))
        assert plain.get("watched") == b"2"


@pytest.mark.unmutated
def test_a_transaction_under_watch_that_was_cut_off(server: str) -> None:
    """The client has forgotten the watch by then, but the function names it."""
    policy = POLICY.with_changes(attempt_timeout=0.2)
    with redis.Redis(unix_socket_path=server) as plain, hanging_proxy(server, once(EXEC=HANG)) as seen:
        plain.delete("watched")
        with pytest.raises(forbear.AttemptTimeout) as caught:
            run_async("decorated", policy, lambda: add_one_async(client(redis.asyncio, seen.port), int))
        assert "depends on a version" in text_of(caught.value)
        assert seen.asked.count("EXEC") == 1


def test_a_command_of_a_hook(server: str) -> None:
    """A read around it does not hide what the hook of its response counts."""
    with Proxy(server, Loser(b"INCR")) as proxy, client(redis, proxy.port) as connection, Wire(reply(200)) as wire:

        def count(response: requests.Response, **_: object) -> None:
            response.close()
            connection.incr("hooks")

        def work() -> None:
            requests.get(wire.url, hooks={"response": count}, timeout=5)

        with virtual_time(), pytest.raises(redis.ConnectionError) as caught:
            POLICY.call(work)
        assert "INCRBY may have been executed" in text_of(caught.value)
        assert connection.get("hooks") == b"1"


def test_the_users_word_for_another_command(server: str) -> None:
    """INCR does not cover an increment by 2."""
    policy = POLICY.with_changes(safe=["INCR", "DECR"])
    lost = pytest.raises(redis.ConnectionError)
    with Proxy(server, Loser(b"INCR")) as proxy, client(redis, proxy.port) as connection, lost:
        policy.call(connection.incr, "other", 2)


def test_a_refusal_of_redis(server: str) -> None:
    """An error response proves that the command was not executed: the policy decides, as for any error."""
    calls = list[int]()
    with redis.Redis(unix_socket_path=server) as plain, virtual_time():
        plain.set("text", "x")

        def count() -> object:
            calls.append(1)
            return plain.incr("text")

        with pytest.raises(redis.ResponseError):
            POLICY.call(count)
    assert len(calls) == 3


def aws(service: str, url: str) -> Any:
    """Return a client of AWS that does not retry."""
    config = botocore.config.Config(retries={"total_max_attempts": 1})
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
    return boto3.client(service, region_name="us-east-1", endpoint_url=url, config=config, **keys)


KEY = {"k": {"S": "1"}}
CALLS: dict[str, tuple[str, Callable[[Any], object], bool]] = {
    "GetItem": ("dynamodb", lambda c: c.get_item(TableName="orders", Key=KEY), True),
    "Query": ("dynamodb", lambda c: c.query(TableName="orders", KeyConditionExpression="k = :k"), True),
    "PutItem": ("dynamodb", lambda c: c.put_item(TableName="orders", Item=KEY), True),
    "PutItem that must not exist": (
        "dynamodb",
        lambda c: c.put_item(TableName="orders", Item=KEY, ConditionExpression="attribute_not_exists(k)"),
        True,
    ),
    "K9 PutItem under a drawn id": (
        "dynamodb",
        lambda c: c.put_item(
            TableName="orders",
            Item={"k": {"S": "0f8fad5b-d9cb-469f-a165-70867728950e"}},
            ConditionExpression="attribute_not_exists(k)",
        ),
        False,
    ),
    "PutItem under a version": (
        "dynamodb",
        lambda c: c.put_item(
            TableName="orders", Item=KEY, ConditionExpression="v = :v", ExpressionAttributeValues={":v": {"N": "1"}}
        ),
        False,
    ),
    "V2 UpdateItem": (
        "dynamodb",
        lambda c: c.update_item(
            TableName="orders", Key=KEY, UpdateExpression="ADD n :v", ExpressionAttributeValues={":v": {"N": "1"}}
        ),
        False,
    ),
    "SendMessage": ("sqs", lambda c: c.send_message(QueueUrl="http://q/1/q", MessageBody="m"), False),
    "K11 a filled token": ("ec2", lambda c: c.create_nat_gateway(SubnetId="s"), False),
    "Publish": ("sns", lambda c: c.publish(TopicArn="arn:aws:sns:us-east-1:1:t", Message="m"), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_aws(name: str) -> None:
    """Reads and plain writes are repeated; messages, counters and versions stop, and a filled token is no key."""
    service, work, repeated = CALLS[name]
    with Wire(Answer(end="close"), Answer(end="close"), Answer(end="close")) as wire:
        connection = aws(service, wire.url)
        with virtual_time(), pytest.raises(BotoCoreError) as caught:
            POLICY.call(work, connection)
        assert len(wire.seen) == (3 if repeated else 1)
    if not repeated:
        assert text_of(caught.value).startswith(service)


def test_sqlite_that_is_locked(tmp_path: Path) -> None:
    """A locked database has executed nothing: an INSERT in the function's own transaction is tried again."""
    path = tmp_path / "db"
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", connect_args={"timeout": 0})
    with engine.begin() as connection:
        connection.exec_driver_sql("create table t (n integer)")
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("begin immediate")
    policy = POLICY.with_on_event(lambda event: lock.execute("rollback") if lock.in_transaction else None)

    def insert() -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("insert into t values (1)")

    with virtual_time():
        policy.call(insert)
    assert lock.execute("select count(*) from t").fetchall() == [(1,)]
    lock.close()
    engine.dispose()


def test_l5_what_was_handled_around_the_call_proves_nothing_of_a_commit() -> None:
    """L5: the caller handles a lock of another statement; the COMMIT of the function may have been executed."""
    engine = sqlalchemy.create_engine("sqlite://")
    calls = list[int]()

    def lose(_: object) -> None:
        raise TimeoutError("no response to COMMIT")

    def insert() -> None:
        calls.append(1)
        with engine.begin() as connection:
            connection.exec_driver_sql("create table t (n integer)")

    event.listen(engine, "commit", lose)
    locked: Any = sqlite3.OperationalError("database is locked")
    locked.sqlite_errorcode = sqlite3.SQLITE_BUSY
    with virtual_time():
        try:
            raise locked
        except sqlite3.OperationalError:
            with pytest.raises(TimeoutError) as caught:
                POLICY.call(insert)
    assert "COMMIT may have been committed" in text_of(caught.value)
    assert calls == [1]
    engine.dispose()


def statement(text: str, error: Exception, *, autocommit: bool | None = False, outside: bool = False) -> str:
    """Return the row of the table for a statement that failed with an error."""
    connection = object()
    arguments = Arguments(None, (connection,) if outside else (), {})
    sent = Sent(
        "psycopg",
        "sql",
        text.split(maxsplit=1)[0],
        Statement(text, autocommit=autocommit, connection=(id(connection),)),
    )
    return row_of(sql_facts(sent, (error,), arguments)).code


MYSQL_DEADLOCK = import_module("pymysql").err.OperationalError(1213, "deadlock")
DEADLOCK = psycopg.errors.DeadlockDetected()
UNKNOWN = psycopg.errors.StatementCompletionUnknown()
LOST = psycopg.OperationalError("server closed the connection unexpectedly")
UPDATE = "update accounts set n = n - 1"


@pytest.mark.parametrize(
    ("text", "error", "more", "row"),
    [
        (UPDATE, DEADLOCK, {}, "rolled_back"),
        ("COMMIT", DEADLOCK, {}, "rolled_back"),
        (UPDATE, MYSQL_DEADLOCK, {}, "rolled_back"),
        (UPDATE, LOST, {}, "rolled_back"),
        (UPDATE, DEADLOCK, {"outside": True}, "their_transaction"),  # L8: the debit is kept, or the credit lost
        (UPDATE, LOST, {"outside": True}, "their_transaction"),
        (UPDATE, DEADLOCK, {"autocommit": True}, "autocommit"),  # L8: the statement before it stays
        (UPDATE, LOST, {"autocommit": True}, "commits"),
        (UPDATE, LOST, {"autocommit": None}, "commits"),  # E2: what cannot be read counts as on
        ("COMMIT", LOST, {}, "commits"),
        ("COMMIT", UNKNOWN, {}, "commits"),
        ("select * from accounts where n in (select max(n) from t)", LOST, {"autocommit": True}, "safe"),
        ("select nextval('ids')", LOST, {"autocommit": True}, "commits"),
        ("select pay(5)", LOST, {"autocommit": True}, "commits"),
        ("with x as (delete from t returning *) select * from x", LOST, {"autocommit": True}, "commits"),
    ],
)
def test_statements(text: str, error: Exception, more: dict[str, Any], row: str) -> None:
    """E2, L8: a transaction that the error ended is repeated, if the function itself began it; a COMMIT never is."""
    assert statement(text, error, **more) == row
