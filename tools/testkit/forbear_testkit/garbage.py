"""A search for loops of objects that hold each other, which only the garbage collector can free."""

import gc
from types import FrameType

import forbear

PACKAGE = forbear.__path__[0]


def loops_through_forbear() -> list[str]:
    """Collect the garbage, and describe each object of forbear in it that leads back to itself.

    Loops of other libraries do not count: aiohttp's stream keeps its error, the error its traceback, the traceback the
    stream. Since Python 3.12 a finished frame also keeps its caller, so what they keep alive says little about forbear.
    """
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
    finally:
        gc.set_debug(0)
    garbage = {id(item): item for item in gc.garbage}
    gc.garbage.clear()
    return [_describe(item) for item in garbage.values() if _is_ours(item) and _leads_back(item, garbage)]


def _is_ours(item: object) -> bool:
    """Return whether forbear defines the class of `item`, or the code if it is a frame."""
    if isinstance(item, FrameType):
        return item.f_code.co_filename.startswith(PACKAGE)
    return type(item).__module__.split(".")[0] == forbear.__name__


def _leads_back(item: object, garbage: dict[int, object]) -> bool:
    """Return whether references within `garbage` lead from `item` to itself."""
    seen, todo = set[int](), [item]
    while todo:
        for target in gc.get_referents(todo.pop()):
            if target is item:
                return True
            if id(target) in garbage and id(target) not in seen:
                seen.add(id(target))
                todo.append(target)
    return False


def _describe(item: object) -> str:
    return item.f_code.co_qualname if isinstance(item, FrameType) else type(item).__qualname__
