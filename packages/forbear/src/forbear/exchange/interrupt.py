"""Tell what interrupted a call, and through which frames an error came; for all clients."""

from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from types import CodeType, FrameType
from typing import Any

from forbear.core.chain import MOST, arguments_of, walk


def is_interrupt(error: BaseException) -> bool:
    """Return whether a signal handler raised this error, or the one that the library turned into it.

    Such an error is meant for the caller and says nothing about the server. The handler must still be installed.
    """
    # Few calls need it. The module signal makes enums of all that it returns, which takes half a millisecond.
    signals: Any = import_module("_signal")
    handlers: list[object] = [signals.getsignal(number) for number in range(1, signals.NSIG)]
    codes = {code for each in handlers if callable(each) and (code := _code(each)) is not None}
    errors = walk(error, _find_inner, MOST) if codes else ()
    return any(frame.f_code in codes for each in errors for frame in frames_of(each))


def _find_inner(error: BaseException) -> list[BaseException]:
    """Return the errors that an error hides, or has among its arguments, as those of urllib3 that were not raised."""
    inner = find_hidden(error, list(frames_of(error))), *arguments_of(error)
    return [each for each in inner if isinstance(each, BaseException)]


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """Yield the frames of the error's traceback, the outermost first."""
    traceback = error.__traceback__
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def find_hidden(error: BaseException, path: Sequence[FrameType]) -> BaseException | None:
    """Return the error that was being handled when this one was raised, None if that passed none of its frames `path`.

    Python also notes an error that the caller was handling at the time; that one has nothing to do with this one.
    """
    context = error.__context__
    if context is None or context.__traceback__ is None:
        return None
    return context if context.__traceback__.tb_frame in path else None


def _code(handler: object) -> CodeType | None:
    """Return the code of a signal handler that is written in Python: a function, a method, a partial or an object."""
    while isinstance(handler, partial):
        handler = handler.func
    code: object = None
    if callable(handler):  # SIG_DFL and SIG_IGN are not
        code = getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
