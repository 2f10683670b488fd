"""What the workload is made of: requests, and the operations they make up. Nothing here sends or judges."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import httpx

from forbear.testing.cloud.storage.store import Store

KEY = "x-demo-request"
"""The header by which the journal of the server tells whose request it was."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Where to look whether a write that may be repeated has happened: what a GET of `path` holds; None: a 404."""

    path: str
    holds: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: step `step` of the operation `operation`.

    `sink` takes the body of a download as it comes. `meanwhile` is what others do as soon as the first attempt is over.
    """

    operation: str
    step: str
    method: str
    path: str
    content: bytes | AsyncIterable[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    sink: bytearray | None = None
    proof: Proof | None = None
    meanwhile: "Callable[[Send], Awaitable[None]] | None" = None

    @property
    def key(self) -> str:
        """The value of the header; no key is a part of another."""
        return f"/{self.operation}/{self.step}/"


Send: TypeAlias = Callable[[Ask], Awaitable[httpx.Response]]
"""Sends a request in a contender's own way and returns a reply that is no error, its body read; or raises."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that the client wants done, once.

    `perform` returns what a read has read, None for a write. `wanted` are the bytes that must have been read or
    written, None where there are none. `kept` tells by the state of the server whether a write is there; a read has
    none. `repeatable` says whether it may be executed twice, by its nature or by its condition.
    """

    name: str
    repeatable: bool
    perform: Callable[[Send], Awaitable[bytes | None]]
    wanted: bytes | None = None
    kept: Callable[[Store], bool] | None = None


def single(ask: Ask, *, repeatable: bool, kept: Callable[[Store], bool], wanted: bytes | None = None) -> Operation:
    """A write that takes one request."""

    async def perform(send: Send) -> None:
        await send(ask)

    return Operation(ask.operation, repeatable, perform, wanted, kept)


async def one_shot(data: bytes, size: int = 16_384) -> "AsyncIterable[bytes]":
    """A body that can be read once, as a pipe."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
