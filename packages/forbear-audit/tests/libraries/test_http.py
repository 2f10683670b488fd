"""Requests in code: of each library the same request is judged the same."""

from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit

HEAD = """import urllib.request, uuid
import requests, stamina

def address():
    return f"https://api.example/orders/{uuid.uuid4()}"

@stamina.retry(on=OSError, attempts=4)
def create(order):
    return """


@pytest.mark.parametrize(
    "call",
    [
        "requests.put(address(), json=order, timeout=5)",
        "urllib.request.urlopen(urllib.request.Request(address(), data=order, method='PUT'), timeout=5)",
    ],
)
def test_a_put_to_a_new_url_in_each_attempt_is_unsafe(call: str, tmp_path: Path) -> None:
    """A PUT to a URL that each attempt makes anew creates one thing more with each, by urllib as by requests."""
    (tmp_path / "a.py").write_text(HEAD + call)
    found = audit([tmp_path], settings=AuditSettings(select=("UNSAFE", "OUTER-KEY"))).findings
    assert [finding.rule for finding in found] == ["UNSAFE", "OUTER-KEY"]
