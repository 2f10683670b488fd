"""Bare connections to a cloud."""

import socket

from forbear.testing.cloud import Cloud


def connect(cloud: Cloud) -> socket.socket:
    """A bare connection."""
    host, port = cloud.url.removeprefix("http://").rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=20)
