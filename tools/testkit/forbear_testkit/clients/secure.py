"""A server nobody trusts: TLS with a certificate it signed itself."""

import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from forbear_testkit.clients.listen import listening

_NAMES = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]


def self_signed(path: Path, *hosts: str, names: Sequence[x509.GeneralName] = _NAMES) -> None:
    """Write a key and a certificate for `names` and `hosts` to `path`; the common name is localhost.

    Without any of them the certificate has no subjectAltName.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))  # clocks are read in whole seconds
        .not_valid_after(now + dt.timedelta(days=1))
    )
    if subjects := [*names, *map(x509.DNSName, hosts)]:
        builder = builder.add_extension(x509.SubjectAlternativeName(subjects), critical=False)
    certificate = builder.sign(key, hashes.SHA256())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))


def trusted(path: Path, monkeypatch: pytest.MonkeyPatch, names: Sequence[x509.GeneralName] = _NAMES) -> ssl.SSLContext:
    """Return the context of a server for `names`, such as localhost, that clients made from now on trust."""
    self_signed(path, names=names)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@contextmanager
def untrusted(path: Path) -> Generator[tuple[str, list[int]]]:
    """The URL of the server, and a list that grows with each handshake."""
    self_signed(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    handshakes: list[int] = []

    def shake_hands(connection: socket.socket) -> None:
        handshakes.append(1)
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65_536)  # to close with a request unread would reset the connection

    with listening(shake_hands) as port:
        yield f"https://127.0.0.1:{port}", handshakes
