"""A server that speaks HTTP/2 without TLS and treats each stream as its script says."""

import socket
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

import h2.config
import h2.connection
import h2.events
from h2.errors import ErrorCodes

from tests.support.clients.listen import listening


class Script:
    """A server that has one action for each stream in turn, and keeps the bodies that it received whole.

    The steps are "refuse", "refuse late" (once the response has begun), "fail", "go away" and "reply".
    """

    def __init__(self, *steps: str) -> None:
        self.steps = list(steps)
        self.streams = 0
        self.bodies: list[bytes] = []


@contextmanager
def h2_server(*steps: str) -> Generator[tuple[str, Script]]:
    """The URL of the server, and its script with what it has seen."""
    script = Script(*steps)
    with listening(partial(_serve, script)) as port:
        yield f"http://127.0.0.1:{port}", script


def _serve(script: Script, sock: socket.socket) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    bodies: dict[int, bytes] = {}
    sock.sendall(connection.data_to_send())
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
        sock.sendall(connection.data_to_send())
        if connection.state_machine.state is h2.connection.ConnectionState.CLOSED:
            while sock.recv(65536):
                pass


def _begin(connection: h2.connection.H2Connection, stream: int, script: Script, bodies: dict[int, bytes]) -> None:
    script.streams += 1
    step = script.steps.pop(0) if len(script.steps) > 1 else script.steps[0]
    if step == "reply":
        bodies[stream] = b""
    elif step == "go away":
        connection.close_connection(ErrorCodes.NO_ERROR, last_stream_id=0)  # no stream was looked at
    else:
        if step == "refuse late":
            connection.send_headers(stream, [(":status", "200"), ("content-length", "9")])
            connection.send_data(stream, b"half")
        refused = step.startswith("refuse")
        connection.reset_stream(stream, ErrorCodes.REFUSED_STREAM if refused else ErrorCodes.INTERNAL_ERROR)
