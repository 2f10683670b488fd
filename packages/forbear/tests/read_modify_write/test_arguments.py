"""Wrong arguments are refused, and the text names the parameter and the cure."""

from typing import Any

import pytest

from forbear.policy import retry
from forbear.read_modify_write import aupdate, update
from forbear.testing.virtual_clock import virtual_time
from forbear_testkit.read_modify_write.store import Doc, Down, Store, is_conflict, lost, mine, modify


async def nothing(*_: object) -> None:
    """An async function where a plain one is wanted."""


def hidden(*_: object) -> object:
    """A plain function that returns a coroutine."""
    return nothing()


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
        ({"read": nothing}, "`read` returned a coroutine: use aupdate"),
        ({"read": hidden}, "`read` returned a coroutine: use aupdate"),
        (
            {"modify": nothing},
            "`modify` must not be async, because it is not awaited, got .*nothing; do async work in",
        ),
        ({"modify": hidden}, "`modify` returned a coroutine: use aupdate"),
        ({"conflict": nothing}, "`conflict` must not be async"),
        ({"mine": nothing}, "`mine` must not be async"),
        ({"write": nothing}, "`write` returned a coroutine: use aupdate"),
        ({"modify": forgetful}, "`modify` must return the new value, but .*forgetful returned None"),
    ],
)
def test_wrong_arguments_are_refused_at_once(other: dict[str, Any], text: str) -> None:
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

    with pytest.raises(TypeError, match=r"`modify` returned a coroutine.*`modify`, `conflict` and `mine` never are"):
        await aupdate(**given(read=read, write=write, modify=hidden))
    assert store.writes == 0


@pytest.mark.parametrize("name", ["mine", "conflict"])
def test_answers_that_are_coroutines_are_refused(name: str) -> None:
    """A coroutine would count as yes: as a conflict, or as a change that is there."""
    store = Store(writes=(lost(),))
    parts: dict[str, Any] = {
        "read": store.read,
        "modify": modify,
        "write": store.write,
        "conflict": is_conflict,
        "mine": mine,
    }
    parts[name] = hidden
    with pytest.raises(TypeError, match=f"`{name}` returned a coroutine"), virtual_time():
        update(**parts, policy=retry(on=Down))
    assert store.writes == 1
