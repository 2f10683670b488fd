"""The walk over errors and frames: its bounds, what it must not run, and that it keeps nothing alive."""

import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import Any, ClassVar, NoReturn

import httpx
import pytest
import requests

from forbear.core.chain import attributes_of
from forbear.evidence import read
from forbear.evidence.table import ATTRIBUTES, was_opening
from forbear.evidence.walk import MOST_ERRORS, MOST_FRAMES, MOST_READERS, Evidence, is_bare
from forbear_testkit.clients.wire import Answer, Wire


def lost(method: str = "POST", *, content: Any = b"order") -> httpx.ReadError:
    """Return the error of a client that sent a request and lost its response."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("lost", request=request)

    with httpx.Client(transport=httpx.MockTransport(fail)) as client:
        try:
            client.request(method, "http://shop.example/orders", content=content)
        except httpx.ReadError as error:
            return error
    raise AssertionError("the transport always fails")


def methods(evidence: Evidence | None) -> list[str]:
    """Return the methods of the requests that were shown."""
    return [] if evidence is None else [sent.method for sent in evidence.requests]


def raised(function: Callable[[], object]) -> BaseException:
    """Return the error that a function raises."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it must raise")


def caused(error: BaseException) -> BaseException:
    """Return an error of Python's own whose cause is `error`."""
    found = ValueError("no order")
    found.__cause__ = error
    return found


def handled(error: BaseException) -> BaseException:
    """Return an error of Python's own whose suppressed context is `error`."""
    found = ValueError("no order")
    found.__context__, found.__suppress_context__ = error, True
    return found


def kept(error: BaseException) -> BaseException:
    """Return an error of Python's own that keeps `error` as an attribute."""
    found = ValueError("no order")
    found.orig = error  # type: ignore[attr-defined]
    return found


def grouped(error: BaseException) -> BaseException:
    """Return a group of `error` alone."""
    return BaseExceptionGroup("all", [error])


def itself(error: BaseException) -> BaseException:
    """Return `error`."""
    return error


@pytest.mark.parametrize("wrap", [caused, handled, kept, ValueError, grouped, itself])
def test_a_quick_look_finds_no_error_bare_that_holds_a_request(wrap: Callable[[BaseException], BaseException]) -> None:
    """The walk finds the request, so the quick look must not end it."""
    error = wrap(lost())
    assert methods(read(error)) == ["POST"]
    assert not is_bare(error)


def test_a_quick_look_knows_the_errors_of_python() -> None:
    """Those that hold nothing are bare, unless a frame of theirs may be that of a client."""

    def urlopen() -> None:
        int("x")

    assert is_bare(raised(lambda: int("x")))
    assert is_bare(OSError(104, "reset by peer"))
    assert not is_bare(raised(urlopen))


def test_a_quick_look_knows_the_errors_of_the_user() -> None:
    """An error of a class of the user's own is as bare, unless it is one of a client, a group, or keeps something."""
    assert is_bare(ShopError("closed"))
    assert is_bare(ShopError("closed", 7))
    assert not is_bare(ShopError("closed", object()))
    assert not is_bare(LostOrderError("closed"))
    assert not is_bare(ShopErrors("closed", [ValueError()]))
    kept = ShopError("closed")
    kept.order = object()  # type: ignore[attr-defined]
    assert not is_bare(kept)


class ShopError(OSError):
    """An error of a class that is not Python's own."""


class LostOrderError(httpx.HTTPError):
    """An error of the user's that is one of a client."""


class ShopErrors(ExceptionGroup[Exception]):
    """A group of the user's own."""


def test_an_error_that_shows_nothing() -> None:
    """An error without a request has no evidence, whatever it wraps."""
    error = raised(lambda: int("x"))
    error.__cause__, error.__context__ = KeyError("a"), OSError(2, "no such file")
    assert read(error) is None
    assert read(ValueError("never raised")) is None


def _name(function: Any) -> str:
    return str(function.__name__)


def _from_cause(error: Exception) -> NoReturn:
    raise KeyError("mine") from error


def _from_context(error: Exception) -> NoReturn:
    try:
        raise error
    except Exception:
        raise KeyError("mine")  # noqa: B904 - the context is what this is about


def _suppressed(error: Exception) -> NoReturn:
    try:
        raise error
    except Exception:
        raise KeyError("mine") from None


def _grouped(error: Exception) -> NoReturn:
    raise ExceptionGroup("several", [ValueError("other"), ExceptionGroup("inner", [error])])


def _in_arguments(error: Exception) -> NoReturn:
    raise RuntimeError("failed", error)


def _as_reason(error: Exception) -> NoReturn:
    wrapper = RuntimeError("failed")
    wrapper.reason = error  # type: ignore[attr-defined]
    raise wrapper


@pytest.mark.parametrize(
    "wrap",
    [_from_cause, _from_context, _suppressed, _grouped, _in_arguments, _as_reason],
    ids=lambda wrap: wrap.__name__,
)
def test_a_wrapped_error_shows_its_request(wrap: Callable[[Exception], NoReturn]) -> None:
    """Causes, contexts, even suppressed ones, members of groups and what libraries wrap all count."""
    assert methods(read(raised(lambda: wrap(lost())))) == ["POST"]


def test_a_pickled_error() -> None:
    """An error that went through pickle has no frames, but its request as far as the class keeps it."""
    assert methods(read(pickle.loads(pickle.dumps(lost())))) == ["POST"]


def test_a_traceback_that_was_built_anew() -> None:
    """Dask pickles tracebacks by tblib. Their frames have no variables: the error counts, or else it is unread."""
    error, tblib = lost("GET"), pytest.importorskip("tblib")
    built = tblib.Traceback(error.__traceback__).as_traceback()
    kept = pickle.loads(pickle.dumps(error)).with_traceback(built)
    assert methods(read(kept)) == ["GET"]
    bare = read(ValueError("lost").with_traceback(built))
    assert bare is not None
    assert {sent.unread for sent in bare.requests} == {"KeyError in its reader"}


def test_an_error_of_another_thread() -> None:
    """An error that was raised in a thread shows its request."""
    errors = list[BaseException]()
    thread = threading.Thread(target=lambda: errors.append(lost()))
    thread.start()
    thread.join()
    assert methods(read(errors[0])) == ["POST"]


def test_l5_the_walk_ends_at_what_was_being_handled() -> None:
    """L5: a call within `except` has the earlier failure in its context, which is no request of this call."""
    earlier, later = lost("POST"), lost("GET")
    later.__context__ = earlier
    assert methods(read(later)) == ["GET", "POST"]
    assert methods(read(later, handled=earlier)) == ["GET"]


def test_l6_every_error_of_the_chain_counts() -> None:
    """L6: the top of the chain was refused, but an earlier request in it was sent."""
    refused = raised(lambda: httpx.post("http://127.0.0.1:9/refused", content=b"B"))
    refused.__context__ = lost()
    requests = read(refused)
    assert requests is not None
    assert [(sent.method, bool(sent.unsent)) for sent in requests.requests] == [("POST", True), ("POST", False)]


def _deep(levels: int, end: Callable[[], object]) -> object:
    return end() if levels == 0 else _deep(levels - 1, end)


def _raise(error: BaseException) -> NoReturn:
    raise error


def test_e4_the_innermost_frames_count() -> None:
    """E4: hundreds of frames of frameworks stand above the client's."""
    assert methods(read(raised(lambda: _deep(MOST_FRAMES + 50, lambda: _raise(lost()))))) == ["POST"]


def test_recursion_that_shows_nothing() -> None:
    """A long traceback without a client's frame is no evidence."""
    assert read(raised(lambda: _deep(sys.getrecursionlimit() * 2, lambda: None))) is None


def _send_frames(count: int) -> list[FrameType]:
    """Return frames of httpx that have sent a request each."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise ValueError("no request on this error")

    frames = list[FrameType]()
    with httpx.Client(transport=httpx.MockTransport(fail)) as client:
        for number in range(count):
            trace = raised(partial(client.post, f"http://shop.example/{number}")).__traceback__
            while trace is not None and trace.tb_frame.f_code.co_name != "_send_single_request":
                trace = trace.tb_next
            assert trace is not None
            frames.append(trace.tb_frame)
    return frames


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("below", [0, MOST_FRAMES - 1, MOST_FRAMES])
def test_e4_the_bounds_are_exact(below: int, more: int) -> None:
    """The first frames of clients are read, however far out they are; one more only among the innermost frames."""
    entries: TracebackType | None = None
    for frame in (*[sys._getframe()] * below, *_send_frames(MOST_READERS + more)):
        entries = TracebackType(entries, frame, 0, 1)
    evidence = read(ValueError("x").with_traceback(entries))
    assert evidence is not None
    far = [sent.unread for sent in evidence.requests if sent.unread is not None]
    assert far == ["its traceback is too long"] * (more if below == MOST_FRAMES else 0)
    assert len(evidence.requests) == MOST_READERS + more


def test_what_two_errors_share_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """urllib3 raises an error of its own with the traceback of the one that it wraps, through the same frame."""
    from forbear.evidence.readers import urllib3 as module

    looks = list[object]()

    def look_below(trace: TracebackType) -> bool | None:
        looks.append(trace)
        return was_opening(trace)

    monkeypatch.setattr(module, "was_opening", look_below)
    with Wire(Answer(end="close")) as wire:
        assert methods(read(raised(lambda: requests.post(wire.url, timeout=5)))) == ["POST"]
    assert len(looks) == 1


def test_ten_thousand_errors_in_a_chain() -> None:
    """A chain that is longer than the bound shows a request that could not be read."""
    top = error = ValueError("0")
    for number in range(10_000):
        error.__context__ = error = ValueError(str(number))
    evidence = read(top)
    assert evidence is not None
    assert [sent.unread for sent in evidence.requests] == [f"the error holds more than {MOST_ERRORS} others"]


def test_e7_chains_in_a_circle_end() -> None:
    """E7: contexts may form a circle."""
    first, second = lost(), ValueError("b")
    first.__context__, second.__context__ = second, first
    assert methods(read(second)) == ["POST"]


class Hostile(Exception):
    """An error all of whose attributes raise, lie or run code."""

    ran: ClassVar[list[str]] = []

    def __getattribute__(self, name: str) -> Any:
        self_ran = Hostile.ran
        self_ran.append(name)
        raise RuntimeError("no attribute can be read")

    def __repr__(self) -> str:
        Hostile.ran.append("repr")
        return "hostile"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        Hostile.ran.append("eq")
        return True

    __hash__ = None  # type: ignore[assignment]


def test_no_code_of_the_user_runs() -> None:
    """Neither properties nor comparisons nor texts of the user's classes are looked at."""
    Hostile.ran.clear()
    error = raised(lambda: _raise(Hostile()))
    attributes_of(error).update(dict.fromkeys(ATTRIBUTES, "text"))
    Hostile.ran.clear()
    assert read(error) is None
    assert Hostile.ran == []


def test_attributes_that_lie() -> None:
    """An attribute `request` that is no request of a client shows nothing."""
    error = ValueError("x")
    error.request = object()  # type: ignore[attr-defined]
    error.response = "POST /"  # type: ignore[attr-defined]
    assert read(error) is None


def test_a_subclass_of_a_librarys_error() -> None:
    """Errors of the user's own that derive from the library's show their request, too."""

    class Mine(httpx.ReadError):
        pass

    error = Mine("lost", request=httpx.Request("PATCH", "http://shop.example/1"))
    assert methods(read(raised(lambda: _raise(error)))) == ["PATCH"]


def test_e6_nothing_is_kept_alive() -> None:
    """E6: reading the variables of a frame keeps nothing alive that they refer to, once the frame is cleared."""
    alive = list[weakref.ref[httpx.Request]]()

    def fail(request: httpx.Request) -> httpx.Response:
        alive.append(weakref.ref(request))
        raise ValueError("no request on this error")

    def send() -> None:
        with httpx.Client(transport=httpx.MockTransport(fail)) as client:
            client.post("http://shop.example/")

    error = raised(send)
    assert methods(read(error)) == ["POST"]
    trace = error.__traceback__
    frames = list[Any]()
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    for entry in frames[1:]:
        entry.clear()
    gc.collect()
    assert [each() for each in alive] == [None]
    assert len(frames) > 3


def test_nothing_is_shown() -> None:
    """The texts of evidence have neither URL nor headers nor body."""
    evidence = read(lost(content=b"password"))
    assert repr(evidence) == "Evidence((Sent('httpx', 'http', 'POST'),))"


def test_a_reader_that_fails_shows_a_request_that_could_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client whose variables have other names than the reader expects is not missed."""
    from forbear.evidence.readers import httpx as module

    def broken(*_: object, **__: object) -> None:
        raise KeyError("request")

    monkeypatch.setattr(module, "_add", broken)
    evidence = read(lost())
    assert evidence is not None
    assert {sent.unread for sent in evidence.requests} == {"KeyError in its reader"}
