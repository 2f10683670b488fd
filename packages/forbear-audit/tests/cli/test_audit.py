"""`forbear audit`: what it prints, its options, and its exit codes."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from forbear_audit import RULES, AuditSettings, audit
from forbear_audit.fixes import FixedFile, fix
from forbear_testkit.audit.examples import POST
from forbear_testkit.cli.running import Invoke

LOOP = (
    "import time\n\n\ndef fetch(client):\n    for attempt in range(3):\n        try:\n"
    "            return client.load()\n"
    "        except OSError:\n            if attempt == 2:\n                raise\n            time.sleep(1)\n"
)


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one finding of severity error; the test runs in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(POST)
    return tmp_path


def test_a_finding_is_printed_with_its_code(code: Path, invoke: Invoke) -> None:
    """The place, the rule, the code with carets and the cure are printed, and the exit code is 1."""
    done = invoke("audit", "shop.py", "--jobs", "1")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("shop.py:7:12: error UNSAFE: POST https://shop.example.com/orders is repeated; ")
    assert lines[1] == "7 |     return requests.post('https://shop.example.com/orders', json=item)"
    assert lines[2] == "  |            " + "^" * 59
    assert lines[3].startswith("  cure: retry only errors that prove")
    assert lines[-1] == "1 error in 1 file"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("args", "exit_code"),
    [
        ((), 1),
        (("--fail-on", "error"), 0),
        (("--fail-on", "note"), 1),
        (("--fail-on", "never"), 0),
        (("--ignore", "FIXED"), 0),
        (("--ignore", "fixed", "--fail-on", "note"), 1),
        (("--select", "NO-DEADLINE,UNSAFE"), 0),
        (("--exclude", "loop.py"), 0),
    ],
)
def test_exit_codes(args: tuple[str, ...], exit_code: int, tmp_path: Path, invoke: Invoke) -> None:
    """The exit code is 1 if a finding that counts is at least as severe as `--fail-on`, by default a warning."""
    (tmp_path / "loop.py").write_text(LOOP)
    assert invoke("audit", str(tmp_path), "--jobs", "1", "--select", "all", *args).exit_code == exit_code


def test_json_has_findings_and_counts(code: Path, invoke: Invoke) -> None:
    """JSON has the fields of each finding, the files that were not read, and the counts."""
    (code / "broken.py").write_text("def f(:\n")
    document: Any = json.loads(invoke("audit", "--json", "--jobs", "1").stdout)
    assert [(f["path"], f["line"], f["rule"], f["library"]) for f in document["findings"]] == [
        ("shop.py", 7, "UNSAFE", "stamina")
    ]
    (unread,) = document["unread"]
    assert unread["path"] == "broken.py"
    assert unread["reason"].startswith("line 1: invalid syntax for Python 3.")
    assert (document["files"], document["lines"], document["suppressed"]) == (1, 8, 0)


def test_sarif_has_rules_and_findings(code: Path, invoke: Invoke) -> None:
    """The SARIF log has all rules, and the finding with its region, level and fingerprint."""
    (code / "broken.py").write_text("def f(:\n")
    log: Any = json.loads(invoke("audit", "--sarif", "--jobs", "1").stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(RULES)
    (result,) = run["results"]
    assert (result["ruleId"], result["ruleIndex"], result["level"]) == ("UNSAFE", 0, "error")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "shop.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 7, "startColumn": 12, "endLine": 7, "endColumn": 71}
    assert result["partialFingerprints"]["forbear/v1"]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"].startswith("not read: line 1: invalid syntax for Python 3.")


def test_a_baseline_is_written_and_used(code: Path, invoke: Invoke) -> None:
    """After --write-baseline the known findings do not count."""
    done = invoke("audit", "--baseline", "known.json", "--write-baseline", "--jobs", "1")
    assert (done.exit_code, done.stderr) == (0, "wrote 1 finding to known.json\n")
    done = invoke("audit", "--baseline", "known.json", "--jobs", "1")
    assert (done.exit_code, done.stdout) == (0, "no findings in 1 file; 1 suppressed\n")


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("rule", RULES)
def test_explain_prints_a_rule(rule: str, columns: int, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule is explained by its reason, its examples and its cures, within the width of the terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    done = invoke("audit", "--explain", rule.lower())
    assert (done.exit_code, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert words.startswith(f"{rule} ({RULES[rule].severity}): {RULES[rule].summary} {RULES[rule].why} Example: ")
    for text in (RULES[rule].example, RULES[rule].cure, *RULES[rule].cures.values(), RULES[rule].cured):
        assert " ".join(text.split()) in words
    plain = [line for line in done.stdout.splitlines() if not line.startswith("    ")]
    assert max(map(len, plain)) <= columns
    assert "\n\n\n" not in done.stdout


def test_explain_several(invoke: Invoke) -> None:
    """Several rules are explained one after the other."""
    text = invoke("audit", "--explain", "STATE,FIXED").stdout
    assert text.index("STATE (warning)") < text.index("FIXED (warning)")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("absent",), "PATH must be a file or folder, got 'absent'"),
        (("--select", "NOPE"), "`--select` must name rules, got 'NOPE'"),
        (("--explain", ""), "`--explain` must name rules, got ''"),
        (("--fix-deadline", "60"), "`--fix-deadline` needs `--fix` or `--diff`"),
        (("--fix-cap", "60"), "`--fix-cap` needs `--fix` or `--diff`"),
        (("--diff", "--json"), "`--json` does not go with `--diff`"),
        (("--fix", "--write-baseline"), "`--write-baseline` does not go with `--fix`"),
        (
            ("--fix", "--fix-deadline", "0"),
            "invalid value for `--fix-deadline`: a duration must be more than zero, such as 90, 1m30s or 500ms",
        ),
        (("--json", "--sarif"), "`--json` does not go with `--sarif`"),
        (("--write-baseline",), "`--write-baseline` needs `--baseline`"),
        (("--baseline", "shop.py"), "`--baseline` must be a file that --write-baseline has written, got shop.py"),
        (("--exclude", ""), "`--exclude` must have patterns that name files or folders, such as"),
        (("--baseline", "no/b.json", "--write-baseline"), "`--baseline` cannot write no/b.json: No such file or direc"),
        (("--baseline", "absent.json"), "cannot read absent.json: No such file or directory"),
    ],
)
def test_bad_input(args: tuple[str, ...], message: str, code: Path, invoke: Invoke) -> None:
    """An error names the option, the rule and the value, a hint the cure, and the exit code is 2."""
    done = invoke("audit", *args)
    assert done.exit_code == 2
    error, hint = done.stderr.splitlines()
    assert error.startswith(f"error: {message}")
    assert hint.startswith("hint: ")


def test_a_wrong_table_in_pyproject(code: Path, invoke: Invoke) -> None:
    """A wrong table is an error that names the file."""
    (code / "pyproject.toml").write_text("[tool.forbear.audit]\nselect = 1\n")
    done = invoke("audit")
    assert done.exit_code == 2
    assert "pyproject.toml: `tool.forbear.audit.select` must be a list of texts, got 1" in done.stderr


@pytest.mark.parametrize("option", [("--json",), ("--sarif",), ()])
def test_an_audit_of_nothing_is_reported(option: tuple[str, ...], code: Path, invoke: Invoke) -> None:
    """A warning on stderr says that no file was read, so that a wrong pattern does not look like clean code."""
    done = invoke("audit", "--exclude", "*.py", *option)
    assert done.exit_code == 0
    assert done.stderr == "warning: no file was read: PATH has no Python code, or patterns leave all of it out\n"


def test_paths_through_a_link(code: Path, invoke: Invoke) -> None:
    """A baseline and SARIF have the same paths through a link as without it."""
    (code / "real" / "src").mkdir(parents=True)
    (code / "shop.py").rename(code / "real" / "src" / "shop.py")
    (code / "link").symlink_to("real")
    (code / "sub").mkdir()
    invoke("audit", "real/src", "--baseline", "real/b.json", "--write-baseline", "--jobs", "1")
    for folder, baseline in (("link/src", "link/b.json"), ("link/src", "real/b.json"), ("real/src", "link/b.json")):
        for path in (folder, f"sub/../{folder}", str(code / folder)):
            done = invoke("audit", path, "--baseline", baseline, "--jobs", "1")
            assert done.stdout == "no findings in 1 file; 1 suppressed\n"
    os.chdir(code / "real")
    log: Any = json.loads(invoke("audit", str(code / "link"), "--sarif", "--jobs", "1").stdout)
    (result,) = log["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {
        "uri": "src/shop.py",
        "uriBaseId": "%SRCROOT%",
    }


def test_code_cannot_command_the_terminal(code: Path, invoke: Invoke) -> None:
    """Characters that command a terminal are replaced in the code that is printed."""
    (code / "shop.py").write_text(POST.replace("json=item)", "json=item)  # \x1b[31m"))
    assert "\x1b" not in invoke("audit", "--jobs", "1").stdout


SETTINGS = AuditSettings()
TENACITY = (
    "from tenacity import retry, stop_after_attempt, wait_exponential\n\n\n"
    "@retry(stop=stop_after_attempt(3), wait=wait_exponential(max=9), retry=R)\ndef f():\n    return g()\n"
)


def test_fix_prints_what_it_changes(code: Path, invoke: Invoke) -> None:
    """Each fix is a line, what is left is printed, the exit code counts what is left, and a hint names the figure."""
    (code / "shop.py").write_text(TENACITY)
    done = invoke("audit", "--fix", "--jobs", "1")
    change = "`wait_random_exponential` instead of `wait_exponential`"
    assert done.stdout.startswith(f"fixed shop.py:4: NO-JITTER: {change}\nshop.py:4:2: warning NO-DEADLINE: ")
    assert (done.exit_code, done.stderr) == (1, "1 more needs a deadline: choose its seconds with --fix-deadline 60\n")
    done = invoke("audit", "--fix", "--fix-deadline", "1m30s", "--jobs", "1")
    assert done.stdout == "fixed shop.py:4: NO-DEADLINE: `stop_after_delay(90)`\nno findings in 1 file\n"
    assert (done.exit_code, done.stderr) == (0, "")
    text = (code / "shop.py").read_text()
    assert "stop=stop_after_attempt(3) | stop_after_delay(90), wait=wait_random_exponential(max=9)" in text
    assert invoke("audit", "--fix", "--fix-deadline", "60", "--jobs", "1").stdout == "no findings in 1 file\n"


def test_diff_writes_nothing(code: Path, invoke: Invoke) -> None:
    """The diff is data on stdout that `patch` can apply; the file stays, and the exit code is that of the findings."""
    (code / "shop.py").write_text(TENACITY)
    done = invoke("audit", "--diff", "--fix-deadline", "60", "--jobs", "1")
    assert (done.exit_code, (code / "shop.py").read_text()) == (1, TENACITY)
    assert done.stdout.startswith("--- a/shop.py\n+++ b/shop.py\n@@ -1,6 +1,6 @@\n-from tenacity import ")
    assert "would fix shop.py:4: NO-JITTER: " in done.stderr
    subprocess.run(["patch", "-p1"], input=done.stdout, text=True, check=True, capture_output=True)
    assert invoke("audit", "--jobs", "1").stdout == "no findings in 1 file\n"


@pytest.mark.parametrize("tool", ["git apply", "patch -p1 --binary"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("crlf.py", TENACITY.replace("\n", "\r\n")),
        ("crlf_but_one.py", TENACITY.replace("\n", "\r\n").replace("retry=R)\r\n", "retry=R)\n")),
        ("tabs.py", TENACITY.replace("    return g()", "\treturn g()\t# \t")),
        ("feeds.py", TENACITY.replace("\n\n\n", "\n\x0c\n\x0b\n# \x1c \x85 \u2028\n").replace("\x0b", "")),
        ("no_end.py", TENACITY.rstrip("\n")),
        ("a name.py", TENACITY),
        ('quotes"\t\\.py', TENACITY),
        ("latin.py", "# coding: latin-1\n# \xe4\n" + TENACITY),
        ("returns.py", TENACITY.replace("\n", "\r")),
    ],
)
def test_a_diff_is_a_patch(name: str, text: str, tool: str, tmp_path: Path) -> None:
    """The bytes of the diff make of the file what --fix makes of it, whatever its lines and its name are."""
    if name.startswith("quotes") and tool != "git apply":
        name = "plain.py"  # GNU patch refuses such a name
    file = tmp_path / name
    file.write_bytes(text.encode("latin-1" if name == "latin.py" else "utf-8"))
    (fixed,) = fix(audit([file], settings=SETTINGS), settings=SETTINGS, dry=True)[1]
    before = FixedFile(Path(name), fixed.before, fixed.after, fixed.fixes)
    done = subprocess.run(
        tool.split(), input=before.patch(), cwd=tmp_path, check=False, capture_output=True, env={"PATH": os.defpath}
    )
    assert (done.returncode, file.read_bytes() == fixed.after) == (0, True), done


def test_the_diff_of_the_command_has_exact_bytes(code: Path) -> None:
    """Tabs, carriage returns and form feeds are written as they are, where stdout is no terminal."""
    (code / "shop.py").write_bytes(TENACITY.replace("\n", "\r\n").replace("    return", "\treturn").encode())
    done = subprocess.run(
        [sys.executable, "-m", "forbear", "audit", "--diff", "--jobs", "1"], capture_output=True, check=False
    )
    assert b"\r\n \treturn g()\r\n" in done.stdout
    subprocess.run(["patch", "-p1", "--binary"], input=done.stdout, check=True, capture_output=True)
    assert b"wait_random_exponential(max=9)" in (code / "shop.py").read_bytes()


def test_json_has_the_fixes(code: Path, invoke: Invoke) -> None:
    """JSON has what was fixed, beside what is left."""
    (code / "shop.py").write_text(TENACITY)
    document: Any = json.loads(invoke("audit", "--fix", "--json", "--jobs", "1").stdout)
    assert [(one["path"], one["line"], one["rule"]) for one in document["fixed"]] == [("shop.py", 4, "NO-JITTER")]
    assert [finding["rule"] for finding in document["findings"]] == ["NO-DEADLINE"]


def test_fix_names_the_extra(code: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libcst the error says how to install it, and the rest of the command works."""
    monkeypatch.setitem(sys.modules, "libcst", None)
    done = invoke("audit", "--fix", "--jobs", "1")
    assert done.exit_code == 2
    assert done.stderr == 'error: this needs libcst, which is not installed\nhint: pip install "forbear[audit]"\n'
    assert invoke("audit", "--jobs", "1").exit_code == 1


def test_progress_is_shown_in_a_terminal(code: Path, env: dict[str, str]) -> None:
    """A terminal shows how many files were read, and the line is gone in the end; stdout has the findings only."""
    controller, terminal = pty.openpty()
    for number in range(40):
        (code / f"m{number}.py").write_text("x = 1\n")
    args = [sys.executable, "-m", "forbear", "audit", "--jobs", "1"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=terminal, env=env, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.read().endswith("1 error in 41 files\n")
    os.close(terminal)
    pieces = list[bytes]()
    with suppress(OSError):  # the end of a terminal that nobody has open any more
        while pieces[-1:] != [b""]:
            pieces.append(os.read(controller, 100_000))
    os.close(controller)
    shown = b"".join(pieces).decode()
    assert "41 files read" in shown
    assert shown.rstrip().endswith("\x1b[2K")
