"""Refusals of SOCKS proxies: which of them last."""

import pytest

from forbear.core.verdict import Kind
from forbear.http.socks import verdict_of_refusal


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Proxy Server could not connect: Connection not allowed by ruleset.", Kind.PERMANENT),
        ("0x07: Command not supported, or protocol error", Kind.PERMANENT),
        ("Address type not supported", Kind.PERMANENT),
        ("All offered SOCKS5 authentication methods were rejected", Kind.PERMANENT),
        ("Invalid username/password", Kind.PERMANENT),
        ("Request rejected because SOCKS server cannot connect to identd on the client", Kind.PERMANENT),
        ("Host unreachable", Kind.NOT_EXECUTED),
        ("", Kind.NOT_EXECUTED),
    ],
)
def test_refusals_are_read_from_the_texts_of_clients(text: str, kind: Kind) -> None:
    """The clients write the words of RFC 1928, in different sentences."""
    assert verdict_of_refusal(text).kind is kind
