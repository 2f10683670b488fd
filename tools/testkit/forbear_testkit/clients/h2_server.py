"""A server that speaks HTTP/2 without TLS and treats each stream as its script says."""

import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import h2.config
import h2.connection
import h2.events
from h2.errors import ErrorCodes

from forbear_testkit.clients.listen import listening


class Script:
    """A server that has one action for each stream in turn, and keeps the bodies that it received whole.

    The steps are "refuse", "refuse late" (once the response has begun), "fail" and "respond". "go away" says that no
    stream was processed, "go away above" that those before this one were, "go away late" the same once the response to
    this one has begun, "go away at" that this one was, too, and "go away soon" that any may have been.
    """

    def __init__(self, *steps: str, tunnel: ssl.SSLContext | None = None) -> None:
        self.steps = list(steps)
        self.tunnel = tunnel
        self.streams = 0
        self.bodies: list[bytes] = []


@contextmanager
def h2_server(*steps: str, tunnel: ssl.SSLContext | None = None) -> Generator[tuple[str, Script]]:
    """The URL of the server, and its script with what it has seen.

    Its settings arrive with its first answer, and before them a client sends one request at a time. With a `tunnel`,
    the URL is that of a proxy, and behind the tunnel is the server, with TLS.
    """
    script = Script(*steps, tunnel=tunnel)
    with listening(partial(_serve, script)) as port:
        yield f"http://127.0.0.1:{port}", script


def _serve(script: Script, sock: socket.socket) -> None:
    if script.tunnel is None:
        _talk(script, sock)
        return
    sock.recv(65536)  # the request for the tunnel is short, and arrives in one piece
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    with script.tunnel.wrap_socket(sock, server_side=True) as secured:
        _talk(script, secured)


def _talk(script: Script, sock: socket.socket) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    bodies: dict[int, bytes] = {}
    while data := sock.recv(65536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                _begin(connection, event.stream_id or 0, script, bodies)
            elif isinstance(event, h2.events.DataReceived) and event.stream_id in bodies:
                bodies[event.stream_id] += event.data or b""
                connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded) and event.stream_id in bodies:
                script.bodies.append(bodies.pop(event.stream_id))
                connection.send_headers(event.stream_id, [(":status", "200")], end_stream=True)
        if connection.highest_inbound_stream_id:
            sock.sendall(connection.data_to_send())
        if connection.state_machine.state is h2.connection.ConnectionState.CLOSED:
            while sock.recv(65536):
                pass


def _begin(connection: h2.connection.H2Connection, stream: int, script: Script, bodies: dict[int, bytes]) -> None:
    script.streams += 1
    step = script.steps.pop(0) if len(script.steps) > 1 else script.steps[0]
    if step == "respond":
        bodies[stream] = b""
    elif step.startswith("go away"):
        if step in ("go away late", "go away soon"):
            connection.send_headers(stream, [(":status", "200")], end_stream=step == "go away soon")
        last = {"go away": 0, "go away at": stream, "go away soon": 2**31 - 1}.get(step, stream - 2)
        connection.close_connection(ErrorCodes.NO_ERROR, last_stream_id=last)
    else:
        if step == "refuse late":
            connection.send_headers(stream, [(":status", "200"), ("content-length", "9")])
            connection.send_data(stream, b"half")
        refused = step.startswith("refuse")
        connection.reset_stream(stream, ErrorCodes.REFUSED_STREAM if refused else ErrorCodes.INTERNAL_ERROR)
