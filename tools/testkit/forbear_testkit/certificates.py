"""Contexts of TLS without the certificates of this machine: to load them takes 20 ms, more than most tests.

Tests talk to loopback, where nobody has a certificate signed by an authority of the machine. What a test trusts
itself is loaded as ever, by an argument or by SSL_CERT_FILE.
"""

import os
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

_AT_START = os.environ.get("SSL_CERT_FILE")
_PATHS = ssl.get_default_verify_paths()
_OF_THE_MACHINE = set[object]((_AT_START, _PATHS.cafile, _PATHS.openssl_cafile)) - {None}
with suppress(ImportError):
    import certifi

    _OF_THE_MACHINE.add(certifi.where())

_load_file, _load_defaults = ssl.SSLContext.load_verify_locations, ssl.SSLContext.load_default_certs


def _load_verify_locations(
    self: ssl.SSLContext, cafile: str | Path | None = None, capath: str | Path | None = None, cadata: Any = None
) -> None:
    """Load what a test has made."""
    if cafile not in _OF_THE_MACHINE:
        _load_file(self, cafile, capath, cadata)


def _load_default_certs(self: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
    """Load what a test has named in SSL_CERT_FILE."""
    if os.environ.get("SSL_CERT_FILE") != _AT_START:
        _load_defaults(self, purpose)


def leave_out() -> None:
    """Let no context of this process load the certificates of the machine."""
    setattr(ssl.SSLContext, "load_verify_locations", _load_verify_locations)  # noqa: B010 — type checkers refuse the rest
    setattr(ssl.SSLContext, "load_default_certs", _load_default_certs)  # noqa: B010
