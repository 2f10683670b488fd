"""Run a suite under the storm's plugin in this process."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

PLUGINS = "forbear_pytest,forbear_storm_pytest,anyio.pytest_plugin"


SUITE = """
import unittest
import anyio, httpx, pytest, requests, tenacity
from forbear_testkit.testing.orders import orders_server

@pytest.fixture(scope="module")
def server():
    with orders_server() as server:
        yield server

@pytest.fixture
def orders(server):
    return server.count

retried = tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(60), reraise=True)

@pytest.mark.forbear_storm(effects="orders", faults=["lost"])
def test_order(server, orders):
    retried(requests.post)(f"{server.url}/orders", timeout=5).raise_for_status()

@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param

@pytest.fixture(scope="module")
async def shared(anyio_backend):
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        yield client

@pytest.mark.anyio
@pytest.mark.forbear_storm(effects="orders", faults=["503"], attempts=5)
async def test_endless(server, orders, shared, anyio_backend):
    async with httpx.AsyncClient(timeout=5, verify=False) as client:
        while (await client.get(server.url)).status_code == 503:
            await anyio.sleep(50)

def number_of_order(url):
    try:
        return requests.get(url, timeout=5).json()["id"]
    except requests.ConnectionError:
        return 0

class TestOrders(unittest.TestCase):
    @pytest.mark.forbear_storm(faults=["refused"])
    def test_swallowed(self):
        with orders_server() as server:
            self.assertEqual(number_of_order(server.url), 1)

@pytest.mark.forbear_storm(faults=["503"])
def test_subtests(server, subtests):
    for number in range(2):
        with subtests.test(number=number):
            assert number_of_order(server.url) == 1

@pytest.mark.forbear_storm(faults=["503"])
def test_honest_subtests(server, subtests):
    with subtests.test():
        requests.get(server.url, timeout=5).raise_for_status()

class TestParts(unittest.TestCase):
    @pytest.mark.forbear_storm(faults=["refused"])
    def test_parts(self):
        with orders_server() as server, self.subTest(part=1):
            self.assertEqual(number_of_order(server.url), 1)

runs = []

def test_unsteady(server):
    runs.append(0)
    for _ in runs:
        requests.get(server.url, timeout=5)

@pytest.mark.forbear_ignore
def test_ignored(server):
    runs.append(0)
    assert requests.get(server.url, timeout=5).ok

@pytest.mark.forbear_storm(faults=["503"])
def test_by_itself(server):
    assert requests.get(server.url, timeout=5).json()["id"] == 1

def test_no_calls():
    pass
"""


def run_here(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, suite: str = SUITE) -> tuple[int, str]:
    """Do the same in this process, which has all modules already."""
    (folder / "test_suite.py").write_text(suite)
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, "test_suite", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    loaded = [part for name in PLUGINS.split(",") for part in ("-p", name)]
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = pytest.main(
            ["-q", "-W", "error", "-p", "no:cacheprovider", "--import-mode=importlib", *loaded, *options, str(folder)]
        )
    return code, output.getvalue()
