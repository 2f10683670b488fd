"""When an error arose, told by functions of the same names as those of the libraries."""

from collections.abc import Callable

import pytest

from forbear.commands.origin import Origin, behind, origin


class Broken(Exception):
    pass


def through(*names: str) -> Callable[[], None]:
    """A function that calls functions of these names, each in the one before, the last of which fails."""

    def fail() -> None:
        raise Broken

    step: Callable[[], None] = fail
    for name in reversed(names):
        namespace: dict[str, Callable[[], None]] = {"step": step}
        exec(f"def {name}():\n    step()", namespace)  # a traceback has the name of the code
        step = namespace[name]
    return step


def caught(function: Callable[[], None]) -> Broken:
    """What the function raises."""
    with pytest.raises(Broken) as found:
        function()
    return found.value


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("get_connection",), Origin.BEFORE),
        (("get_connection", "connect", "on_connect", "send_packed_command"), Origin.BEFORE),
        (("send_command", "send_packed_command", "connect_check_health", "read_response"), Origin.BEFORE),
        (("send_packed_command", "connect"), Origin.BEFORE),
        (("send_packed_command", "check_health", "send_packed_command"), Origin.BEFORE),
        (("execute_command", "initialize", "get_connection"), Origin.BEFORE),
        (("send_packed_command",), Origin.AFTER),
        (("send_packed_command", "sendall"), Origin.AFTER),
        (("parse_response", "read_response"), Origin.AFTER),
        (("connect", "send_packed_command", "check_health"), Origin.CLEANUP),  # anew, once the response is there
        (("_execute_command", "initialize", "get_connection"), Origin.CLEANUP),  # the nodes, after a loss
        (("execute", "reset", "send_packed_command", "connect"), Origin.CLEANUP),
        (("execute_command", "release", "disconnect"), Origin.CLEANUP),
        (("execute_command", "something_new"), Origin.UNKNOWN),
        ((), Origin.UNKNOWN),
    ],
)
def test_the_first_function_that_decides(names: tuple[str, ...], expected: Origin) -> None:
    """What comes after it changes nothing."""
    assert origin(caught(through(*names))) is expected


def test_an_error_that_was_never_raised() -> None:
    """Such as one among replies: it has come through no function."""
    assert origin(Broken()) is Origin.UNKNOWN


def test_what_is_behind_an_error() -> None:
    """Only what was being handled on the error's own way, not what its caller was handling."""

    def library() -> None:
        try:
            through("read_response")()
        except Broken:
            raise Broken from None

    assert isinstance(behind(caught(library)), Broken)
    try:
        raise KeyError
    except KeyError:
        error = caught(through("read_response"))
    assert isinstance(error.__context__, KeyError)
    assert behind(error) is None
    assert behind(Broken()) is None
