"""cp and rsync as functions: the blocking ones, and those that share a Storage. The rules are those of the plans."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from forbear.transfer.items import Item
from forbear.transfer.plan_cp import copies, look, plan_cp
from forbear.transfer.settings import Settings
from forbear.transfer.storage import Storage

_T = TypeVar("_T")


def plan(
    sources: str | Sequence[str],
    target: str,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    exclude: str | None = None,
    settings: Settings | None = None,
) -> list[Item]:
    """What `cp` would do, as items that can be done anywhere and in any order; nothing is copied."""

    async def listed() -> list[Item]:
        async with (settings or Settings()).storage() as storage:
            return await aplan(storage, sources, target, recursive=recursive, no_clobber=no_clobber, exclude=exclude)

    return _blocking(listed(), "aplan")


async def aplan(
    storage: Storage,
    sources: str | Sequence[str],
    target: str,
    *,
    recursive: bool = False,
    no_clobber: bool = False,
    exclude: str | None = None,
) -> list[Item]:
    """`plan` over an open Storage."""
    asked = copies(sources, target, recursive=recursive, no_clobber=no_clobber, exclude=exclude)
    return [item async for item in plan_cp(storage, asked, await look(storage, asked))]


def _blocking(work: Coroutine[Any, Any, _T], other: str) -> _T:
    """Run to the end; RuntimeError inside an event loop, which must go on."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError(f"this blocks, and there is an event loop running here: await `{other}` instead")
