"""A host name that does not resolve, through every adapter: nothing was sent, so even a payment is tried again."""

import socket
from pathlib import Path
from typing import Any

import pytest

from forbear.events import Reason
from forbear_testkit.clients.secure import self_signed
from forbear_testkit.through_everything.adapters import ADAPTERS, Adapter, Call
from forbear_testkit.through_everything.rules import ATTEMPTS, OPERATIONS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate, which no server shows."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    self_signed(path)
    return path


@pytest.mark.parametrize("number", [socket.EAI_NONAME, socket.EAI_AGAIN], ids=["unknown", "temporary"])
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
def test_a_name_that_does_not_resolve(
    adapter: Adapter, number: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt looks the name up again: a container's name exists only once the container has started."""
    lookups: list[object] = []

    def getaddrinfo(host: object, *_: Any, **__: Any) -> Any:
        lookups.append(host)
        raise socket.gaierror(number, "no address")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    payment = OPERATIONS[0]
    outcome = adapter.talk(Call(payment, "http://db.invalid", None, certificate, False, 5.0, False))
    assert isinstance(outcome.error, Exception)
    assert outcome.report is not None
    assert (outcome.report.count, outcome.report.reason) == (ATTEMPTS, Reason.ATTEMPTS)
    assert len(outcome.slept) == ATTEMPTS - 1
    assert len(lookups) in (ATTEMPTS, 2 * ATTEMPTS)  # trio first asks whether it is an address
