"""`forbear audit --storm-plan`: the places in the plan, where it goes, and what goes with it."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.cli.storm_plan import storm_plan
from forbear_audit.rules.catalog import RULES
from forbear_audit.storm.places import StormPlace
from forbear_testkit.audit.examples import POST
from forbear_testkit.cli.running import Invoke

IMPORTS = "import httpx, requests, tenacity, time, urllib3\n"


CASES = {
    "call": (
        """\
        @tenacity.retry(stop=tenacity.stop_after_delay(60), retry=tenacity.retry_if_exception_type(OSError))
        def pay(session: requests.Session) -> None:
            session.post(
                "https://example.com/pay",
            )
        """,
        "UNSAFE",
        ((4, 6), (3, 6)),
    ),
    "decorator": (
        """\
        def outer():
            @tenacity.retry
            def fetch():
                return httpx.get("https://example.com")
        """,
        "UNBOUNDED",
        (None, (4, 5)),
    ),
    "loop": (
        """\
        def fetch():
            while True:
                try:
                    return httpx.get("https://example.com")
                except OSError:
                    time.sleep(1)
        """,
        "UNBOUNDED",
        (None, (2, 7)),
    ),
    "policy": ("patient = tenacity.retry(wait=tenacity.wait_fixed(1))\n", "UNBOUNDED", (None, None)),
    "object": (
        """\
        def session():
            return urllib3.PoolManager(retries=urllib3.Retry(3, allowed_methods=None))
        """,
        "UNSAFE",
        (None, None),
    ),
}


@pytest.mark.parametrize(("code", "rule", "lines"), CASES.values(), ids=CASES)
def test_places_have_their_lines(
    code: str,
    rule: str,
    lines: tuple[tuple[int, int] | None, tuple[int, int] | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A place has the lines of its call and of its function, where it has any, and a path from the current folder."""
    monkeypatch.chdir(tmp_path)
    text = IMPORTS + dedent(code)
    (tmp_path / "shop.py").write_text(text)
    findings = audit(["shop.py"], settings=AuditSettings(select=(rule,))).findings
    (place,) = storm_plan(findings).places
    assert (place.path, place.rule, place.call, place.function) == ("shop.py", rule, *lines)
    assert place.text == text.splitlines()[place.line - 1]


def test_only_rules_that_a_storm_can_prove(tmp_path: Path) -> None:
    """Findings of other rules, and those in notebooks, are left out; the faults are those of the rule."""
    (tmp_path / "a.py").write_text("import tenacity\n\n@tenacity.retry\ndef f(): ...\n")
    (tmp_path / "b.ipynb").write_text(
        '{"cells": [{"cell_type": "code", "source": "import tenacity\\n@tenacity.retry\\ndef f(): ..."}]}'
    )
    findings = audit([tmp_path], settings=AuditSettings(select=tuple(RULES))).findings
    assert {(Path(f.path).name, f.rule) for f in findings} > {("a.py", "FIXED"), ("b.ipynb", "UNBOUNDED")}
    (place,) = storm_plan(findings).places
    assert (Path(place.path).name, place.rule) == ("a.py", "UNBOUNDED")
    assert place.faults == ("503+", "refused+", "lost+")
    assert isinstance(place, StormPlace)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one finding of severity error; the test runs in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(POST)
    return tmp_path


def test_a_plan_in_a_file(code: Path, invoke: Invoke) -> None:
    """The findings are printed as always, the plan is in the file, and a line says what to run next."""
    done = invoke("audit", "--jobs", "1", "--storm-plan", "plan.json")
    assert done.exit_code == 1
    assert done.stdout.endswith("1 error in 1 file\n")
    assert done.stderr == "wrote 1 place to plan.json; now run: pytest --forbear-storm --forbear-storm-plan plan.json\n"
    (place,) = json.loads((code / "plan.json").read_text())["places"]
    assert (place["path"], place["rule"], place["call"]) == ("shop.py", "UNSAFE", [7, 7])


def test_a_plan_on_stdout(code: Path, invoke: Invoke) -> None:
    """With "-" the plan is all that is printed."""
    done = invoke("audit", "--jobs", "1", "--storm-plan", "-")
    assert done.stderr == ""
    assert json.loads(done.stdout)["version"] == 1


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("--storm-plan", "-", "--json"), "`--storm-plan -` does not go with `--json` or `--sarif`"),
        (
            ("--storm-plan", "a", "--write-baseline", "--baseline", "b"),
            "`--storm-plan` does not go with `--write-baseline`",
        ),
        (("--storm-plan", "no/plan.json"), "`--storm-plan` cannot write no/plan.json: No such file or directory"),
    ],
)
def test_bad_options(args: tuple[str, ...], text: str, code: Path, invoke: Invoke) -> None:
    """A plan that cannot be written is an error of usage, with the cure."""
    done = invoke("audit", "--jobs", "1", *args)
    assert done.exit_code == 2
    assert text in done.stderr
    assert "hint: " in done.stderr
