"""Tell what interrupted a call, and through which frames an error came; for all clients."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
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
    installed: list[object] = [signals.getsignal(number) for number in range(1, signals.NSIG)]
    handlers = [handler for each in installed if callable(each) and (handler := _find_function(each)) is not None]
    codes = {handler.__code__ for handler in handlers}
    errors = walk(error, _find_inner, MOST) if codes else ()
    called = (frame for each in errors for frame in frames_of(each) if frame.f_code in codes)
    return any(_may_be_call_of(handler, frame) for frame in called for handler in handlers)


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


def has_frame(error: BaseException, function: str | None = None, module: str | None = None) -> bool:
    """Return whether an error came through a function of this name, in this module; None stands for any."""
    return any(
        function in (None, frame.f_code.co_name) and module in (None, frame.f_globals.get("__name__"))
        for frame in frames_of(error)
    )


def find_hidden(error: BaseException, path: Sequence[FrameType]) -> BaseException | None:
    """Return the error that was being handled when this one was raised, None if that passed none of its frames `path`.

    Python also notes an error that the caller was handling at the time; that one has nothing to do with this one.
    """
    context = error.__context__
    if context is None or context.__traceback__ is None:
        return None
    return context if context.__traceback__.tb_frame in path else None


def _find_function(handler: Any) -> Any:
    """Return the function of a signal handler that is written in Python: its own, or that of a partial or an object.

    None for any other handler.
    """
    while isinstance(handler, partial):
        handler = handler.func
    functions: tuple[Any, ...] = handler, type(handler).__call__
    return next((each for each in functions if isinstance(getattr(each, "__code__", None), CodeType)), None)


def _may_be_call_of(function: Any, frame: FrameType) -> bool:
    """Return whether a frame may be that of a call of `function`.

    All functions that one decorator returns have the same code. They differ in the variables that they close over.
    """
    if frame.f_code is not function.__code__:
        return False
    variables = frame.f_locals if function.__closure__ else {}
    for name, cell in zip(frame.f_code.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):  # an empty cell
            if name in variables and variables[name] is not cell.cell_contents:
                return False
    return True
