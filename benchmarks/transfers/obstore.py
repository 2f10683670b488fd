"""obstore, Python over Rust: its awaited functions, a few files at a time."""

import asyncio
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version as installed
from typing import Any

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task

_obstore: Any = import_module("obstore")
_store: Any = import_module("obstore.store")
_AT_ONCE = 8
_PIECE = 1024 * 1024


def version() -> str:
    return installed("obstore")


def run(task: Task) -> Outcome:
    return measured.call(lambda: asyncio.run(_transfer(task)))


async def _transfer(task: Task) -> list[Exception]:
    store = _store.GCSStore(
        BUCKET,
        config={"base_url": task.url},
        client_options={"allow_http": True},
        # With `skip_signature` alone it asks the metadata server, which is not on loopback, for a token.
        credential_provider=lambda: {"token": "none", "expires_at": None},
    )
    failed: list[Exception] = []

    async def several(names: Iterator[str]) -> None:
        for name in names:
            try:
                await (_up if task.up else _down)(task, store, name)
            except Exception as error:
                failed.append(error)

    names = iter(task.names)
    await asyncio.gather(*(several(names) for _ in range(_AT_ONCE)))
    return failed


async def _up(task: Task, store: Any, name: str) -> None:
    await _obstore.put_async(store, task.object(name), task.file(name))


async def _down(task: Task, store: Any, name: str) -> None:
    result = await _obstore.get_async(store, task.object(name))
    with task.file(name).open("wb", buffering=0) as file:
        if task.large:
            async for piece in result.stream(min_chunk_size=_PIECE):
                file.write(piece)
        else:
            file.write(await result.bytes_async())
