"""docs/what-sdks-repeat.md says what was measured, and some of that is measured again."""

from importlib import import_module
from typing import Any

import pytest

from docs.generate.__main__ import SDKS, page
from docs.generate.sdk_repeats import measured_quota, stored
from tools.sdk_repeats.trials import run

TRIALS = [
    ("aws", "boto3", "sqs.SendMessage", "default", "lost"),
    ("aws", "boto3", "secretsmanager.CreateSecret", "default", "503"),
    ("aws", "boto3", "sqs.SendMessage", "forbear", "lost"),
    ("aws", "boto3", "sqs.SendMessage", "off", "503"),
    ("google", "google-cloud-storage", "Blob.upload_from_string", "forbear", "503"),
    ("stores", "redis-py", "incr", "default", "lost"),
    pytest.param("stores", "pymongo", "insert_one", "default", "lost", marks=pytest.mark.soak),
    pytest.param("stores", "pymongo", "update_many with $inc", "forbear", "lost", marks=pytest.mark.soak),
]


def libraries() -> dict[str, Any]:
    """Return what was stored of each library, by its name."""
    return {library["name"]: library for library in stored()["libraries"]}


def test_the_page_says_what_was_measured() -> None:
    """Its tables are made of the stored figures."""
    assert page(SDKS.stem) == SDKS.read_text(encoding="utf-8")


def test_the_lines_that_turn_retries_off_do_so() -> None:
    """With them, each operation was sent once, and failed."""
    for name, library in libraries().items():
        assert 0 < len(library["operations"]) <= 8, name
        for operation in library["operations"]:
            for fault, trial in operation["off"].items():
                assert (trial["sent"], trial["executed"]) == (1, 1), (name, operation["name"], fault)
                assert trial["error"] is not None


@pytest.mark.parametrize(("module", "library", "operation", "mode", "fault"), TRIALS)
def test_trials_of_today(module: str, library: str, operation: str, mode: str, fault: str) -> None:
    """Clients that are here do today what was stored."""
    found = next(
        each for each in import_module(f"tools.sdk_repeats.libraries.{module}").LIBRARIES if each.name == library
    )
    (tried,) = (each for each in found.operations if each.name == operation)
    (known,) = (each for each in libraries()[library]["operations"] if each["name"] == operation)
    assert run(found, tried, mode, fault) == known[mode][fault]


@pytest.mark.soak
def test_the_quota_of_today() -> None:
    """In processes of 12 calls, the quota changes next to nothing, and one shared bucket does."""
    (row,) = measured_quota([1000])
    assert row in stored()["quota"]
    assert row["shared"] < 1.1 < 2.9 < row["quota"] <= row["none"]
