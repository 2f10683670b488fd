"""The proxy: what it forwards, what it loses, and the arguments of its `cut` function."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from forbear.testing.proxy import Cut, Proxy, at_random

Echo = tuple[str, int]


@pytest.fixture
def echo() -> Iterator[Echo]:
    """Run a server that returns what it receives in capitals, to one client after the other."""
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
    """Send pieces one after the other over one connection; return the responses, up to the cut."""
    answers = list[bytes]()
    with socket.create_connection((proxy.host, proxy.port)) as client:
        for piece in pieces:
            try:
                client.sendall(piece)
                answers.append(client.recv(100))
            except ConnectionError:
                answers.append(b"")
    return answers


def where(asked: bytes, response: bytes | None) -> Cut:
    """Cut at exactly this request and response."""
    return lambda sent, received: (sent, received) == (asked, response)


def never(_asked: bytes, _reply: bytes | None) -> bool:
    """Cut nothing."""
    return False


@pytest.mark.parametrize(
    ("cut", "answers", "cuts"),
    [
        (never, [b"ONE", b"TWO"], {}),
        (where(b"two", None), [b"ONE", b""], {"requests": 1}),
        (where(b"two", b"TWO"), [b"ONE", b""], {"responses": 1}),
        (where(b"one", b"ONE"), [b"", b""], {"responses": 1}),
    ],
    ids=["nothing", "a-request", "a-reply", "the-first"],
)
def test_cutting(echo: Echo, cut: Cut, answers: list[bytes], cuts: dict[str, int]) -> None:
    """`cut` gets the latest request and the response; the piece that it cuts is lost with the connection."""
    with Proxy(echo, cut) as proxy:
        assert talk(proxy, b"one", b"two") == answers
    assert proxy.cuts == cuts


def test_a_request_in_pieces(echo: Echo) -> None:
    """All pieces since the last response are one request."""
    seen = list[tuple[bytes, bytes | None]]()

    def cut(asked: bytes, response: bytes | None) -> bool:
        seen.append((asked, response))
        return response is None and asked.endswith(b"b")

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
    """If the server cannot be reached, the client's connection is closed."""
    with Proxy(target, never) as proxy:
        assert talk(proxy, b"one") == [b""]


def test_it_ends_with_clients_connected(echo: Echo) -> None:
    """Leaving the block closes all open connections."""
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
    """An error in `cut` is raised at the end of the block, and the client does not hang."""

    def cut(*_: object) -> bool:
        raise LookupError("no such key")

    def run(cut: Callable[..., bool]) -> None:
        with Proxy(echo, cut) as proxy:
            assert talk(proxy, b"one") == [b""]

    with pytest.raises(LookupError, match="no such key"):
        run(cut)
