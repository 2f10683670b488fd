"""Bare connections to a cloud."""

import socket
from contextlib import suppress

from forbear_cloud import Cloud


def connect(cloud: Cloud) -> socket.socket:
    """Open a bare connection."""
    host, port = cloud.url.removeprefix("http://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)


def talk(cloud: Cloud, data: bytes) -> bytes:
    """Send bytes and FIN; return everything that is received."""
    got = bytearray()
    with connect(cloud) as sock, suppress(ConnectionError):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        while piece := sock.recv(65_536):
            got += piece
    return bytes(got)
