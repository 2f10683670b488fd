"""What cannot be right is refused, and the text names the parameter and the cure."""

from typing import Any

import pytest

from forbear.policy import retry
from forbear.update import aupdate, update
from tests.update.store import Doc, Store, is_conflict, modify


async def nothing(*_: object) -> None:
    """An async function where a plain one is wanted."""


def forgetful(doc: Doc) -> None:
    """A `modify` that works in place."""


def given(**other: Any) -> dict[str, Any]:
    """Arguments that are right, but for the `other` ones."""
    store = Store()
    return {"read": store.read, "modify": modify, "write": store.write, "conflict": is_conflict, **other}


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"read": Doc(1, ())}, r"`read` must be callable, got Doc\(version=1"),
        ({"modify": None}, "`modify` must be callable, got None"),
        ({"write": "x"}, "`write` must be callable"),
        ({"conflict": 409}, "`conflict` must be callable, got 409"),
        ({"mine": True}, "`mine` must be callable, got True"),
        ({"policy": retry}, "`policy` must be a forbear.Policy, got <function retry"),
        ({"policy": retry(on=OSError, on_result=bool)}, "`policy` must have no on_result"),
        ({"policy": retry(on=OSError, attempt_timeout=1)}, "`policy` must have no attempt_timeout.*use aupdate"),
        ({"read": nothing}, "`read` returned an awaitable: use aupdate"),
        ({"modify": nothing}, "`modify` returned an awaitable: use aupdate"),
        ({"write": nothing}, "`write` returned an awaitable: use aupdate"),
        ({"modify": forgetful}, "`modify` must return the new value, but .*forgetful returned None"),
    ],
)
def test_refusals(other: dict[str, Any], text: str) -> None:
    """Each refusal comes at once, even where the policy would retry a TypeError."""
    parts = given(**other)
    parts.setdefault("policy", retry(on=Exception, attempts=3))
    with pytest.raises(TypeError, match=text):
        update(**parts)


@pytest.mark.anyio
async def test_refusals_in_async_code() -> None:
    """Async updates refuse the same, and an async `modify`."""
    with pytest.raises(TypeError, match="`mine` must be callable"):
        await aupdate(**given(mine=1))
    store = Store()

    async def read() -> Doc:
        return store.read()

    async def write(doc: Doc) -> None:
        store.write(doc)

    with pytest.raises(TypeError, match=r"`modify` returned an awaitable.*`modify` is not"):
        await aupdate(**given(read=read, write=write, modify=nothing))
    assert store.writes == 0
