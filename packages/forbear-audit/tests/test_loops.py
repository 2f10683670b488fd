"""Loops that poll, and waits that grow without a cap."""

import ast
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.modules import Module
from forbear_audit.polling import is_polling
from forbear_audit.rules import RULES

EVERY = AuditSettings(select=tuple(RULES))

POLLING = """
import time

def load(queue):
    while True:
        try:
            return {call}
        except KeyError:
            time.sleep(1)
"""


@pytest.mark.parametrize(
    ("call", "polls"), [("queue['a'].get()", True), ("requests.get('https://api.example.com/a').json()['a']", False)]
)
def test_polling_for_a_key(call: str, polls: bool) -> None:
    """To look for a key of a dict again is polling; to ask a server again is a retry."""
    module = Module(ast.parse(POLLING.format(call=call)), Path("a.py"))
    loop = next(node for node in ast.walk(module.tree) if isinstance(node, ast.While))
    attempt = next(node for node in loop.body if isinstance(node, ast.Try))
    assert is_polling(module, loop, attempt, ("KeyError",)) == polls


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
