"""The proxy: what it passes on, what it loses, and what its judge is told."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from forbear.testing.proxy import Cut, Proxy, at_random

Echo = tuple[str, int]


@pytest.fixture
def echo() -> Iterator[Echo]:
    """A server that answers what it is sent, in capitals, to one client after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                client, _ = listener.accept()
                with client:
                    while piece := client.recv(100):
                        if piece == b"end":
                            return
                        client.sendall(piece.upper())

        thread = threading.Thread(target=serve)
        thread.start()
        address: Echo = listener.getsockname()
        yield address
        with socket.create_connection(address) as client:
            client.sendall(b"end")
            thread.join()


def talk(proxy: Proxy, *pieces: bytes) -> list[bytes]:
    """The answers to pieces that are sent one after the other over one connection; none once it was cut."""
    answers = list[bytes]()
    with socket.create_connection((proxy.host, proxy.port)) as client:
        for piece in pieces:
            try:
                client.sendall(piece)
                answers.append(client.recv(100))
            except ConnectionError:
                answers.append(b"")
    return answers


def where(asked: bytes, reply: bytes | None) -> Cut:
    """Cut at exactly this."""
    return lambda sent, received: (sent, received) == (asked, reply)


def never(_asked: bytes, _reply: bytes | None) -> bool:
    """Cut nothing."""
    return False


@pytest.mark.parametrize(
    ("cut", "answers", "cuts"),
    [
        (never, [b"ONE", b"TWO"], {}),
        (where(b"two", None), [b"ONE", b""], {"requests": 1}),
        (where(b"two", b"TWO"), [b"ONE", b""], {"replies": 1}),
        (where(b"one", b"ONE"), [b"", b""], {"replies": 1}),
    ],
    ids=["nothing", "a-request", "a-reply", "the-first"],
)
def test_cutting(echo: Echo, cut: Cut, answers: list[bytes], cuts: dict[str, int]) -> None:
    """The judge sees what was asked last and the reply to it; a piece that it cuts is lost, with the connection."""
    with Proxy(echo, cut) as proxy:
        assert talk(proxy, b"one", b"two") == answers
    assert proxy.cuts == cuts


def test_a_request_in_pieces(echo: Echo) -> None:
    """What was sent since the last reply belongs together."""
    seen = list[tuple[bytes, bytes | None]]()

    def cut(asked: bytes, reply: bytes | None) -> bool:
        seen.append((asked, reply))
        return reply is None and asked.endswith(b"b")

    with Proxy(echo, cut) as proxy, socket.create_connection((proxy.host, proxy.port)) as client:
        client.sendall(b"one")
        assert client.recv(100) == b"ONE"
        client.sendall(b"a")
        assert client.recv(100) == b"A"
        client.sendall(b"b")
        assert client.recv(100) == b""
    assert seen == [(b"one", None), (b"one", b"ONE"), (b"a", None), (b"a", b"A"), (b"b", None)]


@pytest.mark.parametrize("target", [("127.0.0.1", 1), "/nowhere/socket"], ids=["tcp", "unix"])
def test_no_server(target: str | tuple[str, int]) -> None:
    """Where the server cannot be reached, the client is told by a closed connection."""
    with Proxy(target, never) as proxy:
        assert talk(proxy, b"one") == [b""]


def test_it_ends_with_clients_connected(echo: Echo) -> None:
    """Its end closes what is still open."""
    with Proxy(echo, never) as proxy:
        client = socket.create_connection((proxy.host, proxy.port))
        client.sendall(b"one")
        assert client.recv(100) == b"ONE"
    with client:
        assert client.recv(100) == b""


def test_at_random() -> None:
    """The same seed cuts the same pieces, at about the given rate; 0 cuts none, 1 all."""

    def drawn(cut: Cut) -> list[bool]:
        return [cut(b"", None) for _ in range(1000)]

    assert drawn(at_random(0.2, 5)) == drawn(at_random(0.2, 5)) != drawn(at_random(0.2, 6))
    assert 150 < sum(drawn(at_random(0.2, 5))) < 250
    assert not any(drawn(at_random(0, 5)))
    assert all(drawn(at_random(1, 5)))


def test_an_error_of_the_judge_is_heard(echo: Echo) -> None:
    """A judge that fails is a bug of the test: its error comes out at the end, and the client is not left waiting."""

    def cut(*_: object) -> bool:
        raise LookupError("no such key")

    def run(cut: Callable[..., bool]) -> None:
        with Proxy(echo, cut) as proxy:
            assert talk(proxy, b"one") == [b""]

    with pytest.raises(LookupError, match="no such key"):
        run(cut)
