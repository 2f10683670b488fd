"""Every fault through every adapter, on every route and protocol: what a server executes follows from one table.

The rows are in `faults`, the table in `rules`, the clients in `adapters`, the server in `origin`.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from forbear.events import Reason
from forbear_testkit.clients.secure import self_signed
from forbear_testkit.through_everything.adapters import ADAPTERS, Adapter, Call
from forbear_testkit.through_everything.faults import FAULTS, Fault
from forbear_testkit.through_everything.origin import Origin, origin
from forbear_testkit.through_everything.rules import OPERATIONS, Column, Expected, Operation, expected

ROUTES = ("direct", "tls", "proxy", "connect")
"""The ways to the server: plain, by TLS, through a proxy that passes requests on, through a tunnel with TLS in it."""

PATIENCE = 10.0
"""Seconds that no response takes."""

IMPATIENCE = (0.1, 1.0, PATIENCE)
"""Seconds after which a client gives up a response that will not come."""


@dataclass(frozen=True)
class Case:
    """One cell of the matrix."""

    fault: Fault
    adapter: Adapter
    route: str
    http2: bool
    operation: Operation

    def __str__(self) -> str:
        protocol = "HTTP/2" if self.http2 else "HTTP/1.1"
        return f"{self.fault.name}, {self.adapter.name}, {self.operation.name}, {self.route}, {protocol}"


def cases(fault: Fault, adapter: Adapter) -> list[Case]:
    """All cells of a fault and an adapter; a proxy that passes requests on speaks HTTP/1.1."""
    return [
        Case(fault, adapter, route, http2, operation)
        for operation in OPERATIONS
        for route in ROUTES
        for http2 in ([False, True] if adapter.http2 and route != "proxy" else [False])
        if fault.happens(route, http2)
    ]


def sample() -> list[Case]:
    """Each fault in every second adapter, by turns another way to the server, and each operation with each fault."""
    chosen = list[Case]()
    for number, fault in enumerate(FAULTS):
        for turn, adapter in list(enumerate(ADAPTERS))[number % 2 :: 2]:
            mine = cases(fault, adapter)
            never = [case for case in mine if case.operation.column is Column.NEVER]
            if not never:
                continue
            chosen.append(never[(number + turn) % len(never)])
            others = [case for case in mine if case.operation.column is not Column.NEVER]
            if turn % 4 == number % 4 and not fault.stalls:
                chosen.append(others[(7 * number + 5 * turn) % len(others)])
    return chosen


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate that the clients trust."""
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    self_signed(path)
    return path


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[Origin]:
    """One server for all cells."""
    with origin(certificate) as served:
        yield served


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    """A port where nobody listens, and nobody else can."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


def wrong(case: Case, server: Origin, certificate: Path, closed_port: int, times: int = 1) -> str | None:
    """Run a case whose fault happens so many `times`, and return what is wrong, None if all is as the table says.

    A response that stalls is run again with more patience: on a busy machine the others may have come too late as well.
    """
    found = None
    for patience in IMPATIENCE if case.fault.stalls else [PATIENCE]:
        found = _wrong(case, server, certificate, closed_port, times, patience)
        if found is None:
            break
    return found


def _wrong(case: Case, server: Origin, certificate: Path, closed_port: int, times: int, patience: float) -> str | None:
    fault, operation = case.fault, case.operation
    server.play(fault, times, conditional=operation.column is Column.CONDITION)
    scheme = "https" if case.route in ("tls", "connect") else "http"
    proxied = case.route in ("proxy", "connect")
    first = closed_port if fault.at == "connect" else server.port
    outcome = case.adapter.talk(
        Call(
            operation,
            f"{scheme}://127.0.0.1:{server.port if proxied else first}",
            f"http://127.0.0.1:{first}" if proxied else None,
            certificate,
            case.http2,
            patience,
            fault.reused,
        )
    )
    is_left = outcome.error is not None or outcome.status == 503
    is_whole = operation.method != "GET" or outcome.status != 200 or outcome.content == server.body
    report = outcome.report
    is_told = report is not None and report.reason is Reason.UNSAFE
    found = Expected(
        len(outcome.slept) + 1, server.executed, server.changed, None if is_left else outcome.status, is_told
    )
    right = [expected(row, fault.executes, fault.lasts, times, operation, case.adapter) for row in fault.rows]
    if is_whole and found in right:
        return None
    return f"{case}: {found} instead of {right}: {outcome}"


@pytest.mark.parametrize("case", sample(), ids=str)
def test_what_is_executed_follows_from_the_table(
    case: Case, server: Origin, certificate: Path, closed_port: int
) -> None:
    """A request is repeated if the table says so, once for each failure, and never otherwise."""
    assert wrong(case, server, certificate, closed_port) is None


@pytest.mark.soak
@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_whole_matrix_follows_from_the_table(
    fault: Fault, adapter: Adapter, server: Origin, certificate: Path, closed_port: int
) -> None:
    """Each operation on each route over each protocol; a fault that is the same each time happens once, then twice."""
    found = [
        wrong(case, server, certificate, closed_port, times)
        for case in cases(fault, adapter)
        for times in ((1, 2) if len(fault.rows) == 1 else (1,))
    ]
    assert list(filter(None, found)) == []
