"""The shop: audit suspects three retries, a storm proves that one charges twice, and forbear mends it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from forbear_audit import AuditSettings, audit
from forbear_audit.cli.storm_plan import storm_plan
from forbear_testkit.examples.load import FOLDER

SHOP = FOLDER / "shop"
PROOF = "pytest 'before/test_shop.py::test_an_order_is_charged_once' --forbear-fault 'POST /charges#1:lost'"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.fixture(scope="module")
def parts() -> list[str]:
    """The output of each command of `make demo-audit`, which has to show what it says."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "FORBEAR_"))}
    done = subprocess.run(
        [sys.executable, SHOP / "demo.py"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.split(r"^\n?\d\. .*\n\n\$ ", done.stdout, flags=re.MULTILINE)[1:]


def test_audit_suspects_three_retries(parts: list[str]) -> None:
    """Exactly these three findings, and none in the read that has the same policy."""
    findings = re.findall(r"^(before/\w+\.py:\d+):\d+: (?:error|note) ([A-Z-]+): (.*?)[;:]", parts[0], re.MULTILINE)
    assert findings == [
        ("before/payments.py:15", "UNSAFE", "POST /charges is repeated"),
        ("before/rates.py:12", "UNBOUNDED", "no limit of attempts and no deadline"),
        ("before/stock.py:25", "UNSAFE", "POST /reservations is repeated"),
    ]
    assert parts[0].endswith("\n2 errors, 1 note in 4 files\n")


def test_a_storm_proves_the_double_charge(parts: list[str]) -> None:
    """The storm says of each suspect what it showed, and how to show it again; the tests alone are green."""
    assert "\nduplicated (UNSAFE): before/test_shop.py::test_an_order_is_charged_once\n" in parts[1]
    assert "`charges` rose by 2 instead of 1\n" in parts[1]
    assert f"\n  {PROOF}\n" in parts[1]
    assert re.findall(r"^  (proved|not shown|not reached) +(\S+)", parts[1], re.MULTILINE) == [
        ("proved", "before/payments.py:15"),
        ("not shown", "before/stock.py:25"),
        ("not reached", "before/rates.py:12"),
    ]
    assert "\n1 failed, 1 passed in " in parts[1]


def test_the_reproduction_fails(parts: list[str]) -> None:
    """The command that the storm printed is the next one, and the test itself sees two charges."""
    assert parts[2].startswith(PROOF)
    assert "assert ['order-1', 'order-1'] == ['order-1']" in parts[2]


def test_the_mended_shop_is_clean(parts: list[str]) -> None:
    """Audit finds nothing after the change, and a storm with all faults is green."""
    assert parts[3] == "forbear audit after --select all\nno findings in 4 files\n"
    assert re.search(r"\n2 tests, \d\d runs with a fault, nothing found\n2 passed in ", parts[4])
    assert len(parts) == 5


def test_both_shops_have_the_same_tests() -> None:
    """Only the name of the shop differs in the tests; the functions keep their parameters."""
    before, after = ((SHOP / name / "test_shop.py").read_text(encoding="utf-8") for name in ("before", "after"))
    assert before.replace("from before import", "from after import") == after
    for module in ("payments", "stock", "rates"):
        texts = ((SHOP / name / f"{module}.py").read_text(encoding="utf-8") for name in ("before", "after"))
        signatures = [re.findall(r"^def .*$", text, re.MULTILINE) for text in texts]
        assert set(signatures[0]) <= set(signatures[1])


def test_the_page_shows_the_commands_of_the_demo(parts: list[str]) -> None:
    """The page has the commands of the demo, in its order; it may add options of its own."""
    text = (SHOP / "README.md").read_text(encoding="utf-8")
    commands = [part.partition("\n")[0].removesuffix(" --tb=short") for part in parts]
    places = [text.find(command) for command in commands]
    assert -1 not in places, commands[places.index(-1)]
    assert places == sorted(places)


def test_the_page_of_the_storm_shows_the_output_of_the_demo(parts: list[str]) -> None:
    """Each line below a command of the page is a line of its output, in this order; "..." stands for anything.

    A storm without a plan reports what the one with the plan reports, and more.
    """
    text = (FOLDER.parent / "docs/storm.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    examples = [found for block in blocks for found in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)]
    assert len(examples) == 3
    for command, expected in examples:
        (output,) = (part for part in parts if part.startswith((f"{command}\n", f"{command} --forbear-storm-plan")))
        assert re.search(".*?".join(map(re.escape, expected.split("..."))), output, re.DOTALL), output


@pytest.mark.soak
def test_from_another_folder_and_over_xdist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths and commands count from the current folder; workers of xdist report the places of the plan, too."""
    monkeypatch.chdir(FOLDER)
    plan, log = tmp_path / "plan.json", tmp_path / "storm.sarif"
    findings = audit(["shop/before"], settings=AuditSettings()).findings
    plan.write_text(json.dumps(storm_plan(findings).as_dict()))
    storm = ("--forbear-storm", "--forbear-storm-plan", plan, "--forbear-storm-sarif", log)
    done = subprocess.run([*PYTEST, "shop/before", "-n", "2", *storm], capture_output=True, text=True, check=False)
    assert "\nthe plan: 1 proved, 1 not shown, 1 not reached\n" in done.stdout
    (result,) = json.loads(log.read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "shop/before/payments.py"
    command = re.findall(r"^  pytest ('shop/before/.*)$", done.stdout, re.MULTILINE)[0]
    again = subprocess.run([*PYTEST, *shlex.split(command)], capture_output=True, text=True, check=False)
    assert again.returncode == pytest.ExitCode.TESTS_FAILED, again.stdout
