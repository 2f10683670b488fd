"""pymongo in decorated functions, against a small server of its wire protocol: how often a command is executed."""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

import bson
import pymongo
import pymongo.client_session
import pytest
from pymongo.errors import AutoReconnect, OperationFailure, ServerSelectionTimeoutError
from pymongo.server_api import ServerApi

import forbear
from forbear.testing import virtual_time
from forbear_testkit.clients.listen import listening

POLICY = forbear.retry(on=Exception, attempts=3, timeout=None)
HELLO: dict[str, Any] = {
    "ok": 1.0, "isWritablePrimary": True, "minWireVersion": 0, "maxWireVersion": 21, "maxBsonObjectSize": 2**24,
    "maxMessageSizeBytes": 48_000_000, "maxWriteBatchSize": 100_000, "readOnly": False,
    "logicalSessionTimeoutMinutes": 30,
}  # fmt: skip
DONE: dict[str, Any] = {
    "ok": 1.0,
    "n": 1,
    "nModified": 1,
    "value": None,
    "values": [],
    "cursor": {"id": 0, "ns": "d.c", "firstBatch": []},
}
INNER = frozenset({"hello", "ismaster", "isMaster", "endSessions", "ping"})


class Mongo:
    """A server that answers OP_MSG; the first command of the user ends without an answer, or with `fault`."""

    def __init__(self, fault: dict[str, Any] | None = None) -> None:
        self.fault = fault
        self.executed = list[str]()

    def talk(self, connection: socket.socket) -> None:
        """Answer each message of a connection."""
        with connection.makefile("rb") as stream:
            while head := stream.read(16):
                length, number, _, _ = struct.unpack("<iiii", head)
                body = stream.read(length - 16)
                command = next(iter(bson.decode(body[5 : 5 + struct.unpack("<i", body[5:9])[0]])))
                answer: dict[str, Any] | None = HELLO
                if command not in INNER:
                    self.executed.append(command)
                    answer = DONE if len(self.executed) > 1 else self.fault
                if answer is None:
                    connection.shutdown(socket.SHUT_RDWR)
                    return
                data = b"\0\0\0\0\0" + bson.encode(answer)
                connection.sendall(struct.pack("<iiii", 16 + len(data), 1, number, 2013) + data)


def connect(port: int) -> Any:
    """Return a client that does not retry."""
    options: dict[str, Any] = {"retryWrites": False, "retryReads": False, "serverSelectionTimeoutMS": 20_000}
    return pymongo.MongoClient("127.0.0.1", port, server_api=ServerApi("1"), **options)


SET, BY_ID = {"$set": {"a": 1}}, {"_id": 1}
CALLS: dict[str, tuple[Callable[[Any], object], bool]] = {
    "find_one": (lambda c: c.find_one({"a": 1}), True),
    "find": (lambda c: list(c.find()), True),
    "count": (lambda c: c.count_documents({}), True),
    "estimate": (lambda c: c.estimated_document_count(), True),
    "distinct": (lambda c: c.distinct("a"), True),
    "aggregate": (lambda c: list(c.aggregate([{"$match": {"a": 1}}])), True),
    "aggregate that writes": (lambda c: c.aggregate([{"$match": {}}, {"$out": "other"}]), False),
    "replace by id": (lambda c: c.replace_one(BY_ID, {"a": 1}), True),
    "replace what is found": (lambda c: c.replace_one({"a": 0}, {"a": 1}), False),
    "set by id": (lambda c: c.update_one(BY_ID, SET, upsert=True), True),
    "V1 set if it is free": (lambda c: c.update_one({"_id": 1, "free": True}, SET), False),
    "set several by their ids": (lambda c: c.update_one({"_id": {"$in": [1, 2]}}, SET), False),
    "add by id": (lambda c: c.update_one(BY_ID, {"$inc": {"n": 1}}), False),
    "a pipeline by id": (lambda c: c.update_one(BY_ID, [{"$set": {"n": {"$add": ["$n", 1]}}}]), False),
    "delete by id": (lambda c: c.delete_one(BY_ID), True),
    "delete what is found": (lambda c: c.delete_one({"a": 1}), False),
    "insert": (lambda c: c.insert_one({"a": 1}), False),
    "insert many": (lambda c: c.insert_many([{"a": 1}, {"a": 2}]), False),
    "take": (lambda c: c.find_one_and_delete(BY_ID), False),
    "bulk": (lambda c: c.bulk_write([pymongo.InsertOne({"a": 1})]), False),
    "a command": (lambda c: c.database.command("findAndModify", "c"), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    """A read, and a write of one document by its id, are sent again; what adds, finds or takes is not."""
    call, repeated = CALLS[name]
    server = Mongo()

    def work(port: int) -> None:
        with connect(port) as client:
            call(client.d.c)

    with listening(server.talk) as port, virtual_time():
        if repeated:
            POLICY.call(work, port)
        else:
            with pytest.raises(AutoReconnect) as caught:
                POLICY.call(work, port)
            assert "[unsafe]" in str(caught.value.__notes__)
    assert len(server.executed) == (2 if repeated else 1)


def test_the_word_of_the_user() -> None:
    """The note names the method, and `safe` takes it."""
    server = Mongo()

    def work(port: int) -> None:
        with connect(port) as client:
            client.d.c.insert_one({"a": 1})

    with listening(server.talk) as port, virtual_time():
        with pytest.raises(AutoReconnect) as caught:
            POLICY.call(work, port)
        assert 'say so: safe="pymongo.insert_one"' in str(caught.value.__notes__)
        server.executed.clear()
        POLICY.with_changes(safe="pymongo.insert_one").call(work, port)
    assert server.executed == ["insert", "insert"]


@pytest.mark.parametrize("several", [False, True])
def test_a_command_that_was_rolled_back(*, several: bool) -> None:
    """A label says that the command wrote nothing: it is sent again, unless others may have gone before it."""
    server = Mongo({"ok": 0.0, "code": 112, "errmsg": "conflict", "errorLabels": ["TransientTransactionError"]})

    def work(port: int) -> None:
        with connect(port) as client:
            _ = client.d.c.insert_many([{"a": 1}]) if several else client.d.c.insert_one({"a": 1})

    with listening(server.talk) as port, virtual_time():
        if several:
            with pytest.raises(OperationFailure):
                POLICY.call(work, port)
        else:
            POLICY.call(work, port)
    assert server.executed == ["insert"] * (1 if several else 2)


CURRENT: ContextVar[Any] = ContextVar("current")


BINDS = hasattr(pymongo.client_session.ClientSession, "bind")


@pytest.mark.parametrize("where", ["inside", "outside", *(["bound"] if BINDS else [])])
def test_a_transaction_that_was_rolled_back(where: str) -> None:
    """L8: a transaction is begun again only by the function that began it, wherever the session is kept."""
    server = Mongo({"ok": 0.0, "code": 112, "errmsg": "conflict", "errorLabels": ["TransientTransactionError"]})

    def work(client: Any) -> None:
        if where != "inside":
            _ = client.d.c.insert_one({"a": 1}, session=CURRENT.get() and CURRENT.get()["session"])
        else:
            with client.start_session() as session, session.start_transaction():
                client.d.c.insert_one({"a": 1}, session=session)

    with listening(server.talk) as port, virtual_time(), connect(port) as client:
        if where == "inside":
            POLICY.call(work, client)
        else:
            with client.start_session() as session:
                CURRENT.set({"session": session} if where == "outside" else None)
                session.start_transaction()
                with session.bind() if where == "bound" else nullcontext(), pytest.raises(OperationFailure) as caught:
                    POLICY.call(work, client)
            assert "still open" in str(caught.value.__notes__)
    assert server.executed.count("insert") == (2 if where == "inside" else 1)


def test_no_server() -> None:
    """Without a server nothing was sent, so an insert is tried again."""

    def work(port: int) -> None:
        client: Any
        with pymongo.MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=1) as client:
            client.d.c.insert_one({"a": 1})

    with socket.socket() as nobody, virtual_time():
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(ServerSelectionTimeoutError) as caught:
            POLICY.with_attempts(2).call(work, nobody.getsockname()[1])
    assert "after 2 attempts" in str(caught.value.__notes__)


def test_async() -> None:
    """The async client is read alike."""
    server = Mongo()

    async def work(port: int, *, write: bool) -> None:
        options: dict[str, Any] = {"retryWrites": False, "retryReads": False}
        client: Any
        async with pymongo.AsyncMongoClient("127.0.0.1", port, server_api=ServerApi("1"), **options) as client:
            _ = await (client.d.c.insert_one({"a": 1}) if write else client.d.c.find_one())

    with listening(server.talk) as port, virtual_time():
        asyncio.run(POLICY.acall(work, port, write=False))
        assert server.executed == ["find", "find"]
        server.executed.clear()
        with pytest.raises(AutoReconnect):
            asyncio.run(POLICY.acall(work, port, write=True))
    assert server.executed == ["insert"]
