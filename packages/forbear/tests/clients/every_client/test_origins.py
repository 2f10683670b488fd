"""The origin of a request, as each HTTP adapter shows it to a service: scheme, host and port, defaults filled in."""

from typing import Any

import pytest
import urllib3

from forbear.clients.urllib3 import Retry
from forbear.core.service import Judgement
from forbear.http.request import Request
from forbear.services import rfc9110
from forbear.services.rfc9110 import Rfc9110
from forbear_testkit.clients.others import BLIND_TOO

ORIGINS: list[tuple[str, str, int]] = []


class Spy(Rfc9110):
    """Notes the origin of each request that it classifies."""

    __slots__ = ()

    def classify(self, request: Request) -> Judgement:
        """Note the origin and judge as usual."""
        ORIGINS.append(request.origin)
        return super().classify(request)


SPYING = rfc9110.policy.replace(service=Spy()).with_attempts(1)


@BLIND_TOO
@pytest.mark.parametrize(("host", "name"), [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_adapters_fill_the_origin(flavour: Any, scheme: str, host: str, name: str, closed_port: int) -> None:
    """Nothing listens there, so the request fails and its service is asked."""
    ORIGINS.clear()
    result = flavour.call(flavour.transport(SPYING), "GET", f"{scheme}://{host}:{closed_port}/x")
    assert result.error is not None
    assert set(ORIGINS) == {(scheme, name, closed_port)}


def test_a_pool_of_urllib3_knows_the_origin_of_a_path(closed_port: int) -> None:
    """A pool is given paths, and has the origin itself."""
    ORIGINS.clear()
    with urllib3.HTTPConnectionPool("127.0.0.1", closed_port) as pool, pytest.raises(urllib3.exceptions.HTTPError):
        pool.urlopen("GET", "/x", retries=Retry(SPYING))
    assert set(ORIGINS) == {("http", "127.0.0.1", closed_port)}
