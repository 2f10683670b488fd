"""Loops under WATCH, and error responses for them."""

from typing import Any

from forbear_testkit.clients.redis.flavours import Session

REFUSALS = {
    "LOADING": b"-LOADING Redis is loading the dataset in memory\r\n",
    "BUSY": b"-BUSY Redis is busy running a script.\r\n",
    "READONLY": b"-READONLY You can't write against a read only replica.\r\n",
    "MASTERDOWN": b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
    "CLUSTERDOWN": b"-CLUSTERDOWN The cluster is down\r\n",
    "TRYAGAIN": b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "NOREPLICAS": b"-NOREPLICAS Not enough good replicas to write.\r\n",
}


def add_one(session: Session, *, meanwhile: Any = None) -> Any:
    """Increment k by `transaction()`, with another writer in the middle of the first cycle."""
    turns = [meanwhile] if meanwhile is not None else []

    def change(pipe: Any, value: bytes | None) -> None:
        if turns:
            turns.pop()()
        pipe.multi()
        pipe.set("k", int(value or 0) + 1)

    def run(pipe: Any) -> Any:
        value = pipe.get("k")
        if not hasattr(value, "__await__"):
            return change(pipe, value)

        async def rest() -> None:
            change(pipe, await value)

        return rest()

    return session("transaction", run, "k")


def loop(session: Session, errors: Any) -> Any:
    """Increment k by the loop that the libraries' documentation shows."""

    def run(client: Any) -> None:
        with client.pipeline() as pipe:
            while True:
                try:
                    pipe.watch("k")
                    value = int(pipe.get("k") or 0)
                    pipe.multi()
                    pipe.set("k", value + 1)
                    pipe.execute()
                    return
                except errors.WatchError:
                    continue

    async def arun(client: Any) -> None:
        async with client.pipeline() as pipe:
            while True:
                try:
                    await pipe.watch("k")
                    value = int(await pipe.get("k") or 0)
                    pipe.multi()
                    pipe.set("k", value + 1)
                    await pipe.execute()
                    return
                except errors.WatchError:
                    continue

    return session.run(arun if hasattr(session.client, "aclose") else run)
