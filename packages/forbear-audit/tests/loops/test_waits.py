"""Waits that grow without a cap."""

from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.rules.catalog import RULES

EVERY = AuditSettings(select=tuple(RULES))


BACKOFF = """
import time
import requests

def load(url):
    for attempt in range(12):
        try:
            return requests.get(url, timeout=5)
        except requests.ConnectionError:
            time.sleep({wait})
"""


@pytest.mark.parametrize(("wait", "is_capped"), [("2 ** attempt", False), ("2 + attempt", True), ("2 * attempt", True)])
def test_only_powers_grow_without_a_cap(wait: str, is_capped: bool, tmp_path: Path) -> None:
    """A wait that doubles reaches hours; one that grows by a sum or a product does not."""
    (tmp_path / "a.py").write_text(BACKOFF.format(wait=wait))
    found = {finding.rule for finding in audit([tmp_path], settings=EVERY).findings}
    assert ("NO-CAP" not in found) == is_capped
