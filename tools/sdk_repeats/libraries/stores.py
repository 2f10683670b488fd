"""redis-py before a real Valkey, and pymongo before a server of our own. Nothing is answered there with a 503."""

from typing import Any

from forbear.testing.proxy import Proxy
from forbear.testing.valkey import valkey_server
from forbear_testkit.lazily import Library as Lazy
from tools.sdk_repeats.mongo import MongoServer
from tools.sdk_repeats.trials import Guarded, Library, Operation, call, count

pymongo: Any = Lazy("pymongo")
redis: Any = Lazy("redis")
_ours: Any = Lazy("forbear.clients.redis")


def _run_redis(library: Library, operation: Operation, mode: str, fault: str) -> dict[str, Any]:
    """Lose the response to the first command, and let Valkey say how often it has executed it."""
    command = operation.main
    lost: list[bytes] = []

    def cut(request: bytes, response: bytes | None) -> bool:
        if response is None or lost or f"\r\n{command}\r\n".encode() not in request:
            return False
        lost.append(request)
        return True

    with valkey_server() as path:
        control = redis.Redis(unix_socket_path=path)
        control.rpush("l", "a", "b", "c")
        control.sadd("s", "a", "b", "c")
        control.config_resetstat()
        with Proxy(path, cut) as proxy:
            error = call(operation, library.make(str(proxy.port), mode))
        executed: int = control.info("commandstats")[f"cmdstat_{command.lower()}"]["calls"]
    return count([None] * executed, error)


def _make_redis(port: str, mode: str) -> Any:
    if mode == "forbear":
        return _ours.Redis(port=int(port))
    off = {"retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0)}
    return redis.Redis(port=int(port), **(off if mode == "off" else {}))


def _run_mongo(library: Library, operation: Operation, mode: str, fault: str) -> dict[str, Any]:
    with MongoServer() as server:
        client = library.make(str(server.port), mode)
        error = call(operation, Guarded(client.d.c) if mode == "forbear" else client.d.c)
        client.close()
    return count(server.executed, error)


def _make_mongo(port: str, mode: str) -> Any:
    return pymongo.MongoClient(f"mongodb://127.0.0.1:{port}/?replicaSet=rs", retryWrites=mode == "default")


_ADD = {"$inc": {"n": 1}}

LIBRARIES = (
    Library(
        "redis-py",
        ("redis",),
        _make_redis,
        "Redis(retry=Retry(NoBackoff(), 0))",
        "forbear.clients.redis.Redis()",
        (
            Operation("incr", lambda client: client.incr("n"), "counts twice", "INCRBY"),
            Operation("lpush", lambda client: client.lpush("l", "x"), "a second element", "LPUSH"),
            Operation("lpop", lambda client: client.lpop("l"), "an element is lost", "LPOP"),
            Operation("spop", lambda client: client.spop("s"), "an element is lost", "SPOP"),
            Operation("append", lambda client: client.append("k", "x"), "appends twice", "APPEND"),
            Operation("xadd", lambda client: client.xadd("x", {"a": 1}), "a second entry", "XADD"),
            Operation("publish", lambda client: client.publish("c", "x"), "a second message", "PUBLISH"),
            Operation("set", lambda client: client.set("k", "x"), "", "SET"),
        ),
        run=_run_redis,
    ),
    Library(
        "pymongo",
        ("pymongo",),
        _make_mongo,
        "MongoClient(uri, retryWrites=False)",
        "@forbear.retry(forbear.transient), with retryWrites=False",
        (
            Operation("insert_one", lambda items: items.insert_one({"a": 1}), ""),
            Operation("insert_many", lambda items: items.insert_many([{"a": 1}, {"a": 2}]), ""),
            Operation("update_one with $inc", lambda items: items.update_one({"a": 1}, _ADD), ""),
            Operation("update_many with $inc", lambda items: items.update_many({}, _ADD), "counts twice"),
            Operation("find_one_and_update with $inc", lambda items: items.find_one_and_update({"a": 1}, _ADD), ""),
            Operation("delete_one", lambda items: items.delete_one({}), ""),
            Operation("delete_many", lambda items: items.delete_many({}), "deletes what came meanwhile"),
            Operation(
                "aggregate with $merge",
                lambda items: list(items.aggregate([{"$merge": {"into": "e"}}])),
                "merges twice",
            ),
        ),
        note="MongoDB drops a second command with the same session and number, and pymongo repeats only writes that "
        "have one. So leave its retries on, also with forbear around them; this table is without them.",
        run=_run_mongo,
    ),
)
