"""Reports for a support case: the text that people paste, and the same facts for JSON."""

import json
import math
import pickle

import pytest

from forbear.core.attempt import Attempt, utc
from forbear.core.decide import Reason
from forbear.core.report import Report

IDS = (("x-guploader-uploadid", "ABPtcPq-1"), ("x-cloud-trace-context", "105445aa7843bc8bf206b120001000/1"))
FIRST = Attempt(1, "HTTP 503", "503 Service Unavailable", 0.25, 1.5, 1_790_000_000.1239, 503, IDS)
LAST = Attempt(2, "_InactiveRpcError", "no", 2.0, None, 1_790_000_002.0, "UNAVAILABLE")
RESOURCE = "https://storage.googleapis.com/storage/v1/b/bkt/o/a"


def made(*attempts: Attempt, maybe_done: bool = False, resource: str = RESOURCE) -> Report:
    """A report of a GET that gave up."""
    text = "limit of 2 attempts reached"
    return Report("op", attempts, 2.0, Reason.ATTEMPTS, text, maybe_done, method="GET", resource=resource)


def test_the_text_has_all_facts_of_a_support_case() -> None:
    """It has the request, the outcome, and for each attempt the time, the error, the status, the ids and the wait."""
    assert made(FIRST, LAST).as_text().splitlines() == [
        "Request: GET https://storage.googleapis.com/storage/v1/b/bkt/o/a",
        "Operation: op",
        "Outcome: gave up after 2 attempts in 2 s: limit of 2 attempts reached [attempts]",
        "",
        "Attempt 1 failed at 2026-09-21T14:13:20.123Z, after 0.25 s: HTTP 503",
        "  503 Service Unavailable",
        "  x-guploader-uploadid: ABPtcPq-1",
        "  x-cloud-trace-context: 105445aa7843bc8bf206b120001000/1",
        "  next attempt after a wait of 1.5 s",
        "",
        "Attempt 2 failed at 2026-09-21T14:13:22.000Z, after 2 s: _InactiveRpcError, status UNAVAILABLE",
        "  no",
    ]


def test_the_table_for_notebooks() -> None:
    """A notebook shows each attempt in a row; whatever a server sent is escaped."""
    hostile = Attempt(1, "HTTP 503", "<script>alert(1)</script> & more", 0.25, 1.5)
    table = made(hostile, LAST)._repr_html_()
    assert table.startswith("<table><caption>op: gave up after 2 attempts in 2 s: limit of 2 attempts reached")
    assert table.count("<tr>") == 3
    row = "<td>1</td><td>0.25 s</td><td>HTTP 503</td><td>&lt;script&gt;alert(1)&lt;/script&gt; &amp; more</td>"
    assert f"<tr>{row}<td>1.5 s</td></tr>" in table
    assert table.endswith("<td>2 s</td><td>_InactiveRpcError</td><td>no</td><td></td></tr></tbody></table>")


def test_text_of_what_is_not_known() -> None:
    """A function has no request, an attempt perhaps no time and no text; omitted attempts and doubts are named."""
    attempts = Attempt(1, "Busy", "", 1, 1), Attempt(9, "Busy", "", 2)
    report = Report("op", attempts, 2.0, Reason.ATTEMPTS, "limit", maybe_done=True, omitted=7)
    omitted = "gave up after 9 attempts (7 of them omitted from the report) in 2 s"
    assert report.as_text().splitlines() == [
        "Operation: op",
        f"Outcome: {omitted}: limit; an earlier attempt may have worked [attempts]",
        "",
        "Attempt 1 failed after 1 s: Busy",
        "  next attempt after a wait of 1 s",
        "",
        "7 attempts are omitted here",
        "",
        "Attempt 9 failed after 2 s: Busy",
    ]


def test_the_dict_has_the_same_facts() -> None:
    """It has the same facts, and JSON accepts it."""
    facts = made(FIRST, LAST, maybe_done=True).as_dict()
    assert json.loads(json.dumps(facts)) == facts
    attempts = facts.pop("attempts")
    assert facts == {
        "operation": "op",
        "method": "GET",
        "resource": RESOURCE,
        "reason": "attempts",
        "text": "limit of 2 attempts reached",
        "elapsed": 2.0,
        "count": 2,
        "omitted": 0,
        "maybe_done": True,
        "billed": False,
    }
    assert attempts[0] == {
        "number": 1,
        "time": "2026-09-21T14:13:20.123Z",
        "elapsed": 0.25,
        "error": "HTTP 503",
        "text": "503 Service Unavailable",
        "status": 503,
        "request_ids": dict(IDS),
        "delay": 1.5,
    }
    assert (attempts[1]["status"], attempts[1]["request_ids"], attempts[1]["delay"]) == ("UNAVAILABLE", {}, None)


def test_no_secrets() -> None:
    """Neither texts nor ids nor the resource show one, and all are cut."""
    attempt = Attempt(1, "E", "password=hunter2", 0, request_ids=(("request-id", f"Bearer hunter2 {'x' * 999}"),))
    report = made(attempt, resource="https://me:hunter2@example.com/a?key=hunter2")
    assert "hunter2" not in report.as_text() + json.dumps(report.as_dict()) + repr(report)
    webhook = made(resource="https://hooks.slack.com/services/T0/B0/hunter2")
    assert "hunter2" not in webhook.as_text()
    assert "\x1b" not in made(Attempt(1, "E", "\x1b[2J", 0, request_ids=(("request-id", "\x1b[2J"),))).as_text()
    assert len(attempt.request_ids[0][1]) == 256
    assert len(made(resource="x" * 9999).resource or "") == 2048


def test_time_is_not_compared() -> None:
    """Two runs that went alike are equal, whenever they ran; a pickle keeps the time."""
    later = FIRST.replace(time=5.0)
    assert (FIRST, hash(FIRST)) == (later, hash(later))
    assert later != later.replace(status=500)
    assert pickle.loads(pickle.dumps(later)).time == 5.0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, None), (0.0, "1970-01-01T00:00:00.000Z"), (0.9996, "1970-01-01T00:00:00.999Z"), (1e15, None),
     (math.inf, None), (math.nan, None)],
)  # fmt: skip
def test_times_have_milliseconds(seconds: float | None, text: str | None) -> None:
    """A time in milliseconds, None if no calendar has it."""
    assert utc(seconds) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 error\n  field\r\n\trequired\n", "1 error field required"),
        ("a\\nb", "a\\nb"),  # no line end
        ("C:\\new\n\x07", "C:\\new \\x07"),
        ("Cookie: a=b\nHost: h\npassword=x\ny", "Cookie: [redacted] Host: h password=[redacted]"),
    ],
)
def test_a_text_of_several_lines_becomes_one(text: str, shown: str) -> None:
    """It is read in a log, and a secret still ends where its line does, or later."""
    assert Attempt(1, "OSError", text, 0).text == shown
