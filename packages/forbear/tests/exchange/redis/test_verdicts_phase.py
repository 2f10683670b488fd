"""Test phases of errors that pass through functions named as those of the libraries."""

import signal
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from forbear.exchange.interrupt import is_interrupt
from forbear.exchange.redis.verdicts import Phase, decisive, find_context, is_unreadable, phase_of


class Broken(Exception):
    pass


def through(
    *names: str, kind: Callable[[], BaseException] = Broken, last: Callable[[], None] | None = None
) -> Callable[[], None]:
    """Return a function that calls functions of these names, nested; the innermost calls `last` or raises `kind`."""

    def fail() -> None:
        raise kind()

    step = last or fail
    for name in reversed(names):
        namespace: dict[str, Any] = {"step": step, "__name__": __name__}
        exec(f"def {name}():\n    step()", namespace)  # a traceback has the name of the code
        step = namespace[name]
    return step


def caught(function: Callable[[], None]) -> Broken:
    """Return the error that the function raises."""
    with pytest.raises(Broken) as result:
        function()
    return result.value


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("get_connection",), Phase.BEFORE),
        (("get_connection", "connect", "on_connect", "send_packed_command"), Phase.BEFORE),
        (("send_command", "send_packed_command", "connect_check_health", "read_response"), Phase.BEFORE),
        (("send_packed_command", "connect"), Phase.BEFORE),
        (("send_packed_command", "check_health", "send_packed_command"), Phase.BEFORE),
        (("execute_command", "initialize", "get_connection"), Phase.BEFORE),
        (("send_packed_command",), Phase.AFTER),
        (("send_packed_command", "sendall"), Phase.AFTER),
        (("parse_response", "read_response"), Phase.AFTER),
        (("connect", "send_packed_command", "check_health"), Phase.CLEANUP),  # anew, once the response is there
        (("_execute_command", "initialize", "get_connection"), Phase.CLEANUP),  # the nodes, after a loss
        (("execute", "reset", "send_packed_command", "connect"), Phase.CLEANUP),
        (("execute_command", "release", "disconnect"), Phase.CLEANUP),
        (("execute_command", "something_new"), Phase.UNKNOWN),
        ((), Phase.UNKNOWN),
    ],
)
def test_the_first_function_that_decides(names: tuple[str, ...], expected: Phase) -> None:
    """The functions after it change nothing."""
    assert phase_of(caught(through(*names))) is expected


def test_an_error_that_was_never_raised() -> None:
    """An error among responses has passed through no function."""
    assert phase_of(Broken()) is Phase.UNKNOWN


def test_what_is_behind_an_error() -> None:
    """Only an error that the same call was handling counts, not one that the caller was handling."""

    def library() -> None:
        try:
            through("read_response")()
        except Broken:
            raise Broken from None

    assert isinstance(find_context(caught(library)), Broken)
    try:
        raise KeyError
    except KeyError:
        error = caught(through("read_response"))
    assert isinstance(error.__context__, KeyError)
    assert find_context(error) is None
    assert find_context(Broken()) is None


class Cut(BaseException):
    pass


def nested(*steps: tuple[tuple[str, ...], type[BaseException]]) -> BaseException:
    """Return the error of a function whose first step fails, and then each step that cleans up after the one before."""

    def execute() -> None:
        (names, kind), *later = steps
        try:
            through(*names, kind=kind)()
        finally:
            clean_up(later)

    def clean_up(later: list[tuple[tuple[str, ...], type[BaseException]]]) -> None:
        if later:
            (names, kind), *rest = later
            try:
                through(*names, kind=kind)()
            finally:
                clean_up(rest)

    with pytest.raises(steps[-1][1]) as result:
        execute()
    return result.value


SENT = ("send_packed_command", "sendall")
READ = ("parse_response", "read_response")
CONNECTING = ("get_connection", "connect", "read_response")
LIFTING = ("reset", "send_packed_command", "connect", "read_response")
LOOKING = ("initialize", "get_connection", "connect")


@pytest.mark.parametrize(
    ("steps", "first"),
    [
        ([READ], 0),
        ([CONNECTING], 0),
        ([READ, LIFTING], 0),
        ([SENT, LIFTING], 0),
        ([READ, LOOKING], 0),
        ([READ, LOOKING, LIFTING], 0),
        ([READ, ("send_packed_command", "connect")], 0),  # by a function whose name is not known
        ([CONNECTING, LIFTING], 0),
        ([LIFTING], 0),
        ([READ, READ], 1),  # the command was sent again
        ([CONNECTING, READ], 1),
    ],
)
@pytest.mark.parametrize("kind", [Broken, Cut])
def test_the_error_that_decides(steps: list[tuple[str, ...]], first: int, kind: type[BaseException]) -> None:
    """The failure of the command counts, whatever failed while the library cleaned up."""
    kinds: list[type[BaseException]] = [type(f"Error{number}", (Broken,), {}) for number in range(len(steps))]
    kinds[-1] = type("Last", (kind,), {})
    error = nested(*zip(steps, kinds, strict=True))
    assert type(decisive(error)) is kinds[first]


def test_an_error_within_a_failed_connection_does_not_decide() -> None:
    """It is a part of connecting, though its own traceback begins deeper in the call."""

    def read() -> None:
        try:
            through("read_response", kind=KeyError)()
        except KeyError:
            raise Broken from None

    error = caught(through("get_connection", "connect", last=read))
    assert isinstance(error.__context__, KeyError)
    assert decisive(error) is error


@pytest.mark.parametrize(
    ("kind", "names", "expected"),
    [
        (ValueError, ("read_response",), True),
        (RecursionError, ("parse_response", "read_response"), True),
        (UnicodeDecodeError, ("read_response",), False),
        (OSError, ("read_response",), False),
        (ValueError, ("parse_response",), False),  # of a callback of the caller's
        (Broken, ("read_response",), False),
    ],
)
def test_unreadable_responses(kind: type[Exception], names: tuple[str, ...], expected: bool) -> None:
    """Errors of the parser are recognised, those of a caller's function or encoding are not."""
    with pytest.raises(kind) as result:
        through(*names, kind=lambda: kind(*(["utf-8", b"", 0, 1, ""] if kind is UnicodeDecodeError else [])))()
    assert is_unreadable(result.value) is expected


def test_what_other_code_raises_meanwhile_is_no_unreadable_response() -> None:
    """The error of a handler that has removed itself comes from a module outside of the library and asyncio."""

    def read(step: Callable[[], None], module: str) -> Exception:
        namespace: dict[str, Any] = {"step": step, "__name__": module}
        exec("def read_response():\n    step()", namespace)
        with pytest.raises(ValueError) as result:  # noqa: PT011
            namespace["read_response"]()
        return result.value

    def parse(module: str) -> Callable[[], None]:
        namespace: dict[str, Any] = {"__name__": module}
        exec("def parse():\n    raise ValueError", namespace)
        parsed: Callable[[], None] = namespace["parse"]
        return parsed

    assert is_unreadable(read(parse("library.parsers"), "library.connection"))
    assert is_unreadable(read(parse("asyncio.streams"), "library.connection"))
    assert not is_unreadable(read(parse("handlers"), "library.connection"))


def handler(*_: object) -> None:
    """Raise as a time limit does."""
    raise ValueError("time is up")


class Handlers:
    """Signal handlers of other kinds than functions."""

    def method(self, *_: object) -> None:
        raise ValueError("time is up")

    def __call__(self, *_: object) -> None:
        raise ValueError("time is up")


HANDLERS: dict[str, Callable[..., None]] = {
    "a function": handler,
    "a method": Handlers().method,
    "an object": Handlers(),
    "a partial": partial(partial(handler, 1), 2),
}


@pytest.mark.parametrize("kind", HANDLERS)
def test_an_error_of_a_signal_handler(kind: str) -> None:
    """It is known by the frame of an installed handler, also where the library raised another one over it."""

    def strike() -> None:
        signal.raise_signal(signal.SIGUSR1)

    def library() -> None:
        try:
            through("read_response", last=strike)()
        except ValueError:
            raise Broken from None

    before = signal.signal(signal.SIGUSR1, HANDLERS[kind])
    try:
        with pytest.raises(ValueError, match="time is up") as result:
            through("read_response", last=strike)()
        hidden = caught(library)
        assert is_interrupt(result.value)
        assert is_interrupt(hidden)
        try:
            strike()
        except ValueError:
            assert not is_interrupt(caught(through("read_response")))  # of the caller's own, earlier
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not is_interrupt(result.value)
    assert not is_interrupt(Broken())


def decorated(function: Callable[..., object]) -> Callable[..., None]:
    """Return a function around another one; all of them have the same code."""

    def call(*_: object) -> None:
        function()

    return call


def test_functions_of_one_decorator_are_not_taken_for_each_other() -> None:
    """A handler may have the decorator of a function that the library calls; only what the handler raises counts."""

    def late() -> None:
        raise Broken("time is up")

    before = signal.signal(signal.SIGUSR1, decorated(late))
    try:
        assert not is_interrupt(caught(decorated(through("read_response"))))
        assert is_interrupt(caught(lambda: signal.raise_signal(signal.SIGUSR1)))
        left = caught(lambda: signal.raise_signal(signal.SIGUSR1))
        traceback.clear_frames(left.__traceback__)
        assert is_interrupt(left)  # in doubt, nothing is sent again
    finally:
        signal.signal(signal.SIGUSR1, before)
