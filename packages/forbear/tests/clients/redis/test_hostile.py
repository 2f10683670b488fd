"""A server that lies, says too much or makes no sense: each command ends soon, with few attempts and little memory."""

import gc
import socket
import tracemalloc
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import repeat

import pytest

import forbear
from forbear.core.report import report
from forbear_testkit.clients.listen import listening
from forbear_testkit.clients.redis.flavours import AT_ONCE, FLAVOURS, Flavour
from forbear_testkit.plugin import collect_leftovers
from forbear_testkit.rows import sampled

KB = 1024
Answer = Callable[[socket.socket], object]


def says(data: bytes) -> Answer:
    """Answer with this."""
    return lambda connection: connection.sendall(data)


def says_over_and_over(start: bytes, again: bytes, times: int) -> Answer:
    """Answer with a start and many times the rest, which does not have to be in memory."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(start)
        for piece in repeat(again, times):
            connection.sendall(piece)

    return answer


UNREADABLE: dict[str, Answer] = {
    "a number of 5000 digits": says(b":" + b"9" * 5_000 + b"\r\n"),
    "nested 100 000 deep": says(b"*1\r\n" * 100_000),
    "nothing": lambda connection: connection.shutdown(socket.SHUT_RDWR),
    "a type that is none": says(b"?garbage\r\n"),
    "a length that is none": says(b"$abc\r\n"),
    "a part": says(b"$1000\r\nabc"),
    "endless": says_over_and_over(b"$1000000000000\r\n", b"x" * KB, 64),
    "a list without an end": says_over_and_over(b"*1000000000\r\n", b":1\r\n" * KB, 8),
}
"""Answers that tell nothing of what was executed."""

REFUSING: dict[str, Answer] = {
    "a huge refusal": says(b"-LOADING " + b"x" * 32 * KB + b"\r\n"),
    "a refusal full of secrets": says(b"-READONLY " + b"eyJ-" * 4 * KB + b"\r\n"),
    "a refusal that looks like a pipeline's": says(b"-BUSY " + b"Command # 1 (" * 4 * KB + b"\r\n"),
    "a refusal without words": says(b"-TRYAGAIN" + b" " * 16 * KB + b"\r\n"),
}
"""Answers that say that nothing was executed."""


@pytest.fixture(autouse=True)
def _no_collector(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep the collector from ending clients of earlier tests where the stack has no room left for that."""
    if "nested" not in request.node.name:
        yield
        return
    collect_leftovers()
    gc.disable()
    yield
    gc.enable()


class Hostile:
    """The traffic of a server: the number of connections, and the commands of the callers by name."""

    def __init__(self, answer: Answer) -> None:
        self.port = 0
        self.commands: list[bytes] = []
        self._answer = answer

    def talk(self, connection: socket.socket) -> None:
        """Answer a client's greeting as servers do, and the caller's commands with the test's answer."""
        with connection.makefile("rb") as stream:
            while line := stream.readline():
                words = [stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(int(line[1:]))]
                name = words[0].upper()
                if name in (b"CLIENT", b"HELLO", b"WATCH", b"MULTI", b"UNWATCH"):
                    connection.sendall(b"-ERR unknown command\r\n" if name == b"HELLO" else b"+OK\r\n")
                    continue
                self.commands.append(name)
                self._answer(connection)


@contextmanager
def hostile(answer: Answer) -> Generator[Hostile]:
    """Run a server that answers like this."""
    server = Hostile(answer)
    with listening(server.talk) as port:
        server.port = port
        yield server


@pytest.mark.parametrize("answer", sampled(UNREADABLE, 4))
def test_a_response_that_cannot_be_read(flavour: Flavour, answer: str) -> None:
    """INCR may have been executed, so it is sent once; GET is sent again, as often as the policy has it."""
    policy = AT_ONCE.with_attempts(3)
    with (
        hostile(UNREADABLE[answer]) as server,
        flavour.connect(server.port, policy=policy, protocol=2, socket_timeout=0.5) as session,
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever the library makes of it
            session("incr", "k")
        assert server.commands == [b"INCRBY"]
        result = report(caught.value)
        assert result is not None
        assert result.reason is forbear.events.Reason.UNSAFE
        with pytest.raises(Exception) as caught:  # noqa: PT011
            session("get", "k")
        assert server.commands == [b"INCRBY", *[b"GET"] * 3]
        assert_small(caught.value)


@pytest.mark.parametrize("answer", sampled(REFUSING, 1))
def test_a_refusal_of_any_size(flavour: Flavour, answer: str) -> None:
    """It is repeated within the limits, and only a short part of its text is kept."""
    policy = AT_ONCE.with_attempts(3)
    with (
        hostile(REFUSING[answer]) as server,
        flavour.connect(server.port, policy=policy, protocol=2) as session,
        pytest.raises((flavour.errors.ConnectionError, flavour.errors.ResponseError)) as caught,
    ):
        session("incr", "k")
    assert server.commands == [b"INCRBY"] * 3
    assert_small(caught.value)


@pytest.mark.parametrize("answer", [b"*0\r\n", b"*3\r\n:1\r\n:2\r\n:3\r\n", b"+OK\r\n", b":1\r\n", b"*-1\r\n"])
def test_an_exec_that_answers_nonsense(flavour: Flavour, answer: bytes) -> None:
    """A transaction with INCR is sent once, whatever EXEC answers."""
    queued = [b"+QUEUED\r\n", answer]

    def say(connection: socket.socket) -> None:
        connection.sendall(queued.pop(0))

    with (
        hostile(say) as server,
        flavour.connect(server.port, protocol=2, socket_timeout=0.5) as session,
        pytest.raises(Exception),  # noqa: B017, PT011 - whatever the library makes of it
    ):
        session.execute([("INCRBY", "k", 1)], transaction=True)
    assert server.commands == [b"INCRBY", b"EXEC"]


@pytest.mark.parametrize("flavour", sampled(FLAVOURS, 1), ids=lambda flavour: flavour.name)
def test_large_refusals_are_not_kept(flavour: Flavour) -> None:
    """A refusal of 32 KB, a hundred times over, leaves almost no memory allocated."""
    policy = AT_ONCE.with_attempts(100).with_timeout(None)  # the machine may be slow
    with (
        hostile(says(b"-LOADING " + b"x" * 32 * KB + b"\r\n")) as server,
        flavour.connect(server.port, policy=policy, protocol=2) as session,
        traced() as left,
        pytest.raises(flavour.errors.BusyLoadingError) as caught,
    ):
        session("get", "k")
    assert len(server.commands) == 100
    assert_small(caught.value)
    assert left[0] < 60 * 32 * KB


@contextmanager
def traced() -> Generator[list[int]]:
    """Measure the bytes that the block allocated and did not give back."""
    left: list[int] = []
    tracemalloc.start()
    try:
        yield left
    finally:
        gc.collect()  # the parsers of the libraries leave each error in a cycle
        left.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()


def assert_small(error: BaseException) -> None:
    """Check that what forbear adds to an error is small."""
    result = report(error)
    assert result is not None
    assert all(len(attempt.text) <= 500 for attempt in result.attempts)
    assert sum(map(len, error.__notes__)) <= 500
