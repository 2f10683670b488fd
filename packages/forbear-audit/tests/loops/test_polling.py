"""Loops that poll, and so are no retries."""

import ast
from pathlib import Path

import pytest

from forbear_audit.loops.polling import is_polling
from forbear_audit.reading.modules import Module

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
