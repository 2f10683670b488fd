"""Run the tests of other packages in a storm, and print what it found.

Run it as `python -m benchmarks.storm_trials [--only NAME] [--sample N]`. It downloads pinned source packages into a
folder outside the repository, and makes an environment for each there. It runs their tests without the storm and with
it. A test that fails in the storm alone, without a finding, may be a mistake of the storm, and makes the exit code 1.
"""

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.environments import EDITABLE

ROOT = Path(__file__).parents[1]
FOLDER = Path(tempfile.gettempdir()) / "forbear-storm-trials"
HOUR = 3600


@dataclass(frozen=True, slots=True)
class Trial:
    """A package at one version, what its tests need, and the test files that send calls to a server.

    `options` are passed to pytest. `sample` limits the runs of each test.
    """

    name: str
    version: str
    requirements: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    sample: int | None = None


TRIALS = (
    Trial(
        "requests",
        "2.34.2",
        ("pytest==9.2.0", "pytest-httpbin", "pytest-mock", "trustme", "PySocks"),
        ("tests/test_requests.py",),
        ("-k", "redirect or auth or cookie or post or stream or chunk"),
        sample=2,
    ),
    Trial(
        "httpx",
        "0.28.1",
        ("pytest==9.2.0", "anyio", "trio", "uvicorn", "trustme", "chardet", "httpx[brotli,cli,http2,socks,zstd]"),
        ("tests/test_api.py", "tests/client/test_client.py", "tests/client/test_async_client.py"),
        ("-W", "ignore"),
    ),
    Trial(
        "webdav4",
        "0.11.0",
        ("pytest==8.3.5", "cheroot", "colorama", "wsgidav", "fsspec", "typing-extensions"),
        ("tests/test_client.py",),
        sample=3,
    ),
    Trial(
        "elastic-transport",
        "9.4.2",
        (
            "pytest==9.2.0", "pytest-asyncio", "pytest-httpbin", "pytest-httpserver", "pytest-mock", "trustme", "trio",
            "requests", "aiohttp", "httpx", "respx", "orjson", "anyio", "opentelemetry-sdk",
        ),
        ("tests/test_httpserver.py", "tests/async_/test_httpserver.py", "tests/test_httpbin.py"),
    ),
    Trial(
        "pytest-httpserver",
        "1.2.0",
        ("pytest==9.2.0", "requests", "httpx"),
        ("tests",),
    ),
    Trial(
        "opentelemetry-exporter-otlp-proto-grpc",
        "1.45.1",
        ("pytest==9.2.0", "opentelemetry-test-utils==0.66b1", "opentelemetry-sdk==1.45.1", "grpcio"),
        ("tests",),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a trial; `broken` are the tests that fail in the storm alone."""

    tests: int
    runs: int
    findings: list[dict[str, str]]
    clean_seconds: float
    seconds: float
    broken: list[str]


def main() -> int:
    """Run the trials and print a table; return 1 if a test fails in the storm alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="NAME", choices=[trial.name for trial in TRIALS], help="run one package")
    parser.add_argument("--sample", type=int, metavar="N", help="take N runs for each test (default: all)")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where packages go (default {FOLDER})")
    parser.add_argument("-k", dest="expression", metavar="EXPRESSION", help="select tests, as in pytest")
    options = parser.parse_args()
    folder = Path(options.folder).resolve()
    if folder.is_relative_to(ROOT):
        parser.error(f"--folder must be outside of the repository {ROOT}, got {folder}")
    extra = [] if options.expression is None else ["-k", options.expression]
    broken = 0
    for trial in TRIALS:
        if options.only in (None, trial.name):
            result = run(trial, folder, extra, options.sample or trial.sample)
            broken += len(result.broken)
            show(trial, result)
    return 1 if broken else 0


def run(trial: Trial, folder: Path, extra: list[str], sample: int | None) -> Result:
    """Set a package up where that is not done yet, and run its tests without and with the storm."""
    home = folder / f"{trial.name}-{trial.version}"
    source = prepare(trial, home)
    clean_file, storm_file = home / "clean.xml", home / "storm.xml"
    file = home / "storm.json"
    file.unlink(missing_ok=True)
    clean_seconds = tested(trial, home, source, [f"--junitxml={clean_file}", *extra])
    storm = ["--forbear-storm", "--forbear-storm-json", str(file)]
    storm += [] if sample is None else ["--forbear-storm-sample", str(sample)]
    seconds = tested(trial, home, source, [f"--junitxml={storm_file}", *storm, *extra])
    if not file.exists():
        raise SystemExit(f"pytest ended too early; its output is in {home / 'storm.log'}")
    written = json.loads(file.read_text())
    blamed = {finding["test"].rpartition("::")[2] for finding in written["findings"]}
    broken = [name for name in failures(storm_file) - failures(clean_file) if name.rpartition("::")[2] not in blamed]
    runs = sum(test["runs"] for test in written["tests"])
    return Result(len(written["tests"]), runs, written["findings"], clean_seconds, seconds, sorted(broken))


def prepare(trial: Trial, home: Path) -> Path:
    """Return the folder of the unpacked package, with an environment beside it."""
    python = home / "venv/bin/python"
    if not (home / "ready").exists():
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home / "venv")], check=True)
        pip = [str(python), "-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check"]
        package = f"{trial.name}=={trial.version}"
        subprocess.run([*pip, "install", package, *trial.requirements, *map(str, EDITABLE)], check=True)
        subprocess.run(
            [*pip, "download", "--no-deps", "--no-binary", trial.name, "--dest", str(home), package], check=True
        )
        (archive,) = home.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(home / "source", filter="data")
        (home / "ready").touch()
    (source,) = (home / "source").iterdir()
    return source


def tested(trial: Trial, home: Path, source: Path, options: list[str]) -> float:
    """Run the tests, and return the seconds that it took; the output is written to a file beside the package."""
    command = [
        str(home / "venv/bin/python"),
        "-m",
        "pytest",
        "-q",
        "-o",
        "addopts=",
        *trial.options,
        *options,
        *trial.tests,
    ]
    name = "storm.log" if "--forbear-storm" in options else "clean.log"
    began = time.perf_counter()
    with (home / name).open("w") as log:
        subprocess.run(command, cwd=source, stdout=log, stderr=log, timeout=HOUR, check=False)
    return time.perf_counter() - began


def failures(file: Path) -> set[str]:
    """Return the names of the tests that failed, from a JUnit file."""
    return {
        f"{case.get('classname')}::{case.get('name')}"
        for case in ET.parse(file).iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    }


def show(trial: Trial, result: Result) -> None:
    """Print a row of the table, and the findings below it."""
    kinds = Counter(finding["kind"] for finding in result.findings)
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
    print(
        f"| {trial.name} {trial.version} | {result.tests} | {result.runs} | {listed} | "
        f"{result.clean_seconds:.0f} s, {result.seconds:.0f} s |"
    )
    for finding in result.findings:
        if finding["kind"] != "lost":
            print(f"    {finding['kind']} {finding['test']} {finding['fault']}")
            print(f"        {finding['site']}: {finding['text']}")
    for name in result.broken:
        print(f"    fails in the storm alone: {name}")


if __name__ == "__main__":
    sys.exit(main())
