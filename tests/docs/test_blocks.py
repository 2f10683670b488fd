"""Every block of code in the documentation is run or checked; here are those without a test of their page."""

import doctest
import json
import re
import shlex
import tomllib
from itertools import takewhile
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import httpx
import pytest
import requests
from click.testing import CliRunner
from google.api_core.exceptions import RetryError
from google.cloud import storage
from jsonschema import Draft202012Validator

from benchmarks.transfers import __main__ as transfers
from forbear.cli.app import app
from forbear.clients.google_storage import DEFAULT_RETRY, install
from forbear.clients.httpx import RetryTransport
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_audit.settings import read_settings
from forbear_cloud import Cloud, Fault
from forbear_testkit import ROOT
from forbear_testkit.clients.google import ANONYMOUS

PAGES = [
    page
    for pattern in ("*.md", "examples/**/*.md", "packages/*/*.md", "docs/*.md", "docs/use/*.md")
    for page in sorted(ROOT.glob(pattern))
]
"""All pages but docs/reference, which is made of what other tests run: tables, rules, scenarios, docstrings."""

TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(page, kind, block) for page, text in TEXTS.items() for kind, block in BLOCK.findall(text)]

OF_THEIR_OWN = {
    "docs/cli.md": "tests/commands/test_docs.py",
    "docs/simulate.md": "packages/forbear-simulate/tests/cli/test_run.py",
    "docs/tools.md": "tests/docs/test_tools.py",
    "docs/transfer.md": "packages/forbear-transfer/tests/cli/test_cp_docs.py",
    "examples/shop/README.md": "tests/examples/test_shop.py",
}
"""Pages whose commands another module runs."""
SAMPLES = {
    ("packages/forbear/ARCHITECTURE.md", "text"),
    ("packages/forbear-audit/ARCHITECTURE.md", "text"),
    ("packages/forbear-simulate/ARCHITECTURE.md", "text"),
    ("packages/forbear-transfer/ARCHITECTURE.md", "text"),
    ("docs/google.md", "text"),
    ("docs/export.md", "js"),
    ("docs/export.md", "php"),
    ("docs/curl.md", "json"),
}
"""Samples. Those of docs/curl.md and docs/google.md are checked below; those of docs/export.md need Node.js and PHP.
The pages of architecture have pictures of layers."""

FILES = ("fleet.toml", "docs/fleet/budget.toml", "report.csv", "photos/a.jpg", "docs/a.md")
TYPED = [
    (page, line)
    for page, kind, block in BLOCKS
    if kind in {"console", "shell"} and page not in OF_THEIR_OWN
    for line in re.findall(r"^(?:\$ )?((?:forbear|make|pip|python) (?:.*\\\n)*.*)$", block, re.MULTILINE)
] + [
    (page, line)
    for page, text in TEXTS.items()
    for line in re.findall(r"^    ((?:forbear|make|pip) .*)$", BLOCK.sub("", text), re.MULTILINE)
]
"""The lines that a reader types, in blocks and in indented text."""

INDENTED = [
    (page, block)
    for page, text in TEXTS.items()
    for block in re.findall(r"(?<=\n\n)((?: {4}.*\n)+)", BLOCK.sub("", text))
    if not re.match(r" +(?:[-*]|\d+\.) ", block)
]
BY_HAND = {
    ("docs/audit.md", "response ="): "packages/forbear-audit/tests",
    ("docs/audit.md", "[tool.forbear.audit"): "below",
    ("docs/audit.md", "repos:"): "packages/forbear-audit/tests/cli/test_hook.py",
    ("docs/cli.md", "eval "): "tests/commands/test_completion.py",
    ("docs/observe.md", "WARNING:forbear:"): "below",
    ("docs/shared-budget.md", "deposit"): "a formula",
}
"""Indented text that is no command by the page and its beginning, and where it is tested."""


def test_every_kind_of_block_is_checked() -> None:
    """Python and its output are run by test_examples.py, commands by a module named here or by this one.

    Every fence has a kind, and indented text is a command or listed here.
    """
    for text in TEXTS.values():
        assert len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE)) == 2 * len(BLOCK.findall(text))
    for page, block in INDENTED:
        first = block.strip()
        assert first.startswith(("forbear ", "make ", "pip ")) or any(
            page == where and first.startswith(start) for where, start in BY_HAND
        ), block
    unknown = {
        (page, kind)
        for page, kind, _ in BLOCKS
        if kind not in {"python", "output", "console", "shell"}
        and (page, kind) not in SAMPLES
        and page not in OF_THEIR_OWN
    }
    assert unknown == set()
    assert all((ROOT / module).is_file() for module in OF_THEIR_OWN.values())


@pytest.mark.parametrize(("page", "line"), TYPED, ids=[f"{page}: {line}" for page, line in TYPED])
def test_what_a_reader_types_is_right(page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Extras, targets of make, and options exist; a command of forbear takes its line. Some are run."""
    words = shlex.split(line.replace("\\\n", " "), comments=True)
    if words[0] == "pip":
        for package, extras in re.findall(r"\b(forbear[a-z-]*)\[([\w,-]+)\]", " ".join(words)):
            text = (ROOT / "packages" / package / "pyproject.toml").read_text("utf-8")
            assert set(extras.split(",")) <= set(tomllib.loads(text)["project"]["optional-dependencies"])
    elif words[0] == "make":
        assert f"\n.PHONY: {words[1]}\n" in (ROOT / "Makefile").read_text("utf-8")
    elif words[0] == "python":
        if words[1:4] == ["-m", "benchmarks", "transfers"]:
            source = Path(transfers.__file__).read_text("utf-8")
            assert [word for word in words[4:] if word.startswith("--") and f'"{word}"' not in source] == []
    else:
        monkeypatch.chdir(tmp_path)
        for name in (*FILES, "before/a.py", "after/a.py", "src/a.py"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text("")
        arguments = [*takewhile(lambda word: word != ">", words[1:])]
        assert _takes(arguments), page
        if words[1] in {"audit", "explain", "export", "schedule"}:
            assert CliRunner().invoke(app, arguments, prog_name="forbear", catch_exceptions=False).exit_code == 0


@pytest.mark.soak
@pytest.mark.parametrize("line", sorted({line for _, line in TYPED if line.startswith("forbear simulate ")}))
def test_a_simulation_on_a_page_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each `forbear simulate` in the text works; that takes seconds."""
    monkeypatch.chdir(tmp_path)
    scenario = re.findall(r"^```toml\n(.*?)^```", TEXTS["docs/simulate.md"], re.MULTILINE | re.DOTALL)[0]
    Path("docs/fleet").mkdir(parents=True)
    Path("docs/fleet/budget.toml").write_text((ROOT / "docs/fleet/budget.toml").read_text(encoding="utf-8"))
    Path("fleet.toml").write_text(scenario)
    words = shlex.split(line, comments=True)[1:]
    done = CliRunner().invoke(app, words, prog_name="forbear", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stdout


def test_the_settings_on_the_page_of_the_audit_are_right(tmp_path: Path) -> None:
    """The table for pyproject.toml has all keys, and each is understood."""
    (table,) = (block for page, block in INDENTED if page == "docs/audit.md" and "[tool.forbear.audit]" in block)
    (rest,) = (block for page, block in INDENTED if page == "docs/audit.md" and "per-file-ignores]" in block)
    (tmp_path / "pyproject.toml").write_text(dedent(table) + (dedent(rest) if rest is not table else ""))
    settings = read_settings(tmp_path)
    assert settings.per_file_ignores == {"tests/**/*.py": ("FIXED",)}
    assert (settings.exclude, settings.fail_on, settings.ignore) == (("vendored",), "error", ("LAST-SLEEP",))


def test_the_lines_of_the_log_look_so(caplog: pytest.LogCaptureFixture) -> None:
    """The two lines in docs/observe.md are those of a read that is retried, and of a deletion that is not."""
    (block,) = (block for _, block in INDENTED if "WARNING:forbear:" in block)
    with Cloud() as cloud, virtual_time(seed=1), httpx.Client(transport=RetryTransport(cloud_storage.policy)) as client:
        cloud.store.create_bucket("b")
        cloud.store.put("b", "a", b"1", {})
        cloud.fault(Fault.status(503))
        client.get(f"{cloud.url}/storage/v1/b/b/o/a")
        cloud.fault(Fault.reset(when="after"))
        with pytest.raises(httpx.ReadError):
            client.delete(f"{cloud.url}/storage/v1/b/b/o/a")
    lines = [f"{line.levelname}:{line.name}:{line.getMessage()}" for line in caplog.records if line.levelno >= 30]
    expected = [re.sub(r"[\d.]+(?= s\b)", "...", line.strip()) for line in block.splitlines()]
    expected[1] = expected[1].partition("ReadTimeout")[0] + "..."
    for shown, got in zip(expected, lines, strict=True):
        assert doctest.OutputChecker().check_output(shown, got, doctest.ELLIPSIS), got


def _takes(words: list[str]) -> bool:
    """Return whether the command line takes the words; a click.UsageError says why not."""
    command = app.get_command(click.Context(app), words[0])
    assert command is not None
    return command.make_context(words[0], words[1:], parent=click.Context(app, info_name="forbear")).command is command


SHOWN = [
    (line, expected)
    for page, kind, block in BLOCKS
    if kind == "console" and page not in OF_THEIR_OWN
    for line, expected in re.findall(r"^\$ (forbear explain .*)\n((?:(?!\$ ).*\n)+)", block, re.MULTILINE)
]


@pytest.mark.parametrize(("line", "expected"), SHOWN, ids=[line for line, _ in SHOWN])
def test_what_explain_prints(line: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`forbear explain` prints into a pipe what stands below it; "..." stands for anything."""
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it
    done = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="forbear", catch_exceptions=False)
    assert doctest.OutputChecker().check_output(expected, done.stdout, doctest.ELLIPSIS), done.stdout


def test_the_report_in_the_page_of_curl_agrees_with_its_schema() -> None:
    """The sample of `--report json` is a document that the command could print."""
    schema = json.loads((ROOT / "docs" / "schemas" / "curl.json").read_text(encoding="utf-8"))
    samples = [block for page, kind, block in BLOCKS if (page, kind) == ("docs/curl.md", "json")]
    assert len(samples) == 1
    assert [error.message for error in Draft202012Validator(schema).iter_errors(json.loads(samples[0]))] == []


@pytest.mark.parametrize(("installed", "length"), [(False, None), (True, -1)])
def test_the_note_on_the_page_of_google_is_right(installed: bool, length: int | None) -> None:
    """The sample is the note on an update that is not repeated; with `install` it has the first cure alone."""
    (sample,) = (block for page, kind, block in BLOCKS if (page, kind) == ("docs/google.md", "text"))
    with Cloud() as cloud:
        cloud.store.create_bucket("b")
        client: Any = storage.Client("p", ANONYMOUS, client_options={"api_endpoint": cloud.url})
        bucket = (install(client) if installed else client).get_bucket("b")
        bucket.labels = {"team": "blue"}
        cloud.fault(Fault.reset(when="after"))
        with pytest.raises((requests.ConnectionError, RetryError)) as caught:
            bucket.update(retry=DEFAULT_RETRY)
        client.close()
    cures = " ".join(sample.split()).split(", or ")[:length]
    assert caught.value.__notes__[0].endswith(": " + ", or ".join(cures) + " [unsafe]")
