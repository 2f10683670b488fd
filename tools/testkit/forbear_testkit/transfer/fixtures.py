"""One embedded cloud for all tests of transfers, and states of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from forbear_cloud import Cloud


@pytest.fixture(scope="session")
def running_cloud() -> Iterator[Cloud]:
    """A cloud for all tests, since starting one takes longer than most of them."""
    with Cloud() as cloud:
        yield cloud


@pytest.fixture
def cloud(running_cloud: Cloud) -> Cloud:
    """The cloud with nothing in it but the bucket "bkt"."""
    running_cloud.reset()
    running_cloud.clear_faults()
    running_cloud.store.create_bucket("bkt")
    return running_cloud


@pytest.fixture(autouse=True)
def own_states(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """States of transfers go to a folder of the test's own, and no emulator is named by the environment."""
    monkeypatch.setenv("FORBEAR_STATE_DIR", str(tmp_path_factory.mktemp("states")))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
