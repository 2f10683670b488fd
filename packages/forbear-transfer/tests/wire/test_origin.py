"""URLs become the origin that a connection leads to, and the rest, which is sent as it is."""

import pytest

from forbear_transfer.wire.origin import Origin, split


@pytest.mark.parametrize(
    ("url", "origin", "netloc", "target"),
    [
        ("http://host", Origin("http", "host", 80), "host", "/"),
        ("HTTPS://Host:443/a%2Fb?c=/d", Origin("https", "host", 443), "host", "/a%2Fb?c=/d"),
        ("https://[::1]:8443/", Origin("https", "::1", 8443), "[::1]:8443", "/"),
    ],
)
def test_a_url_has_an_origin_and_a_target(url: str, origin: Origin, netloc: str, target: str) -> None:
    """The port is that of the scheme if the URL has none, and nothing of the target is decoded."""
    assert split(url) == (origin, target)
    assert origin.netloc == netloc


@pytest.mark.parametrize("url", ["host/a", "ftp://host/a", "http:///a", "http://host:port/"])
def test_what_is_no_url_of_http_is_refused(url: str) -> None:
    """A request needs a host that can be reached by HTTP."""
    with pytest.raises(ValueError, match=r"`url` must begin with|[Pp]ort"):
        split(url)
