"""docs/tools.md: it names every export target and adapter, its lines do what it says, and its differences are real."""

import doctest
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

import forbear.clients
from forbear.cli.app import app
from forbear.clients.httpx import RetryTransport
from forbear.core.verdict import Safety
from forbear.export import TARGETS
from forbear.policy import Policy
from forbear.services import cloud_storage, iam, memorystore, registry
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit import ROOT

PAGE = (ROOT / "docs" / "tools.md").read_text(encoding="utf-8")
EXAMPLES = [
    example
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for example in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]
RUNS = [example for example in EXAMPLES if example[0].startswith("forbear run ")]
OTHERS = [example for example in EXAMPLES if example not in RUNS]
LINES = sorted(set(re.findall(r"`(forbear export [^`]+)`", PAGE)))
STAND_IN = """#!/bin/sh
# Fails once, as the program named {name} does, then works.
test "$FORBEAR_ATTEMPT" = 1 || exit 0
echo '{message}' >&2
exit 1
"""
STORAGE = "https://storage.googleapis.com"
BUCKET = "/storage/v1/b/my-bucket"
INSTANCE = "/v1/projects/p/locations/l/instances/i"
ACCOUNT = "/v1/projects/p/serviceAccounts/a@p.iam.gserviceaccount.com"
ETAG = {"If-Match": "CAE="}


@pytest.fixture(scope="module")
def one_cloud() -> Iterator[Cloud]:
    """A cloud with a bucket, for all tests of the page."""
    with Cloud() as cloud:
        cloud.store.create_bucket("my-bucket")
        yield cloud


def check(expected: str, got: str) -> None:
    """Compare; "..." stands for anything."""
    assert doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS), got


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_named(target: str) -> None:
    """The page names each target of `forbear export`."""
    assert re.search(rf"forbear export {target}\b|`{target}`", PAGE)


def test_every_adapter_is_named() -> None:
    """The page names each public module of `forbear.clients`, and none that does not exist."""
    modules = {module.name for module in pkgutil.iter_modules(forbear.clients.__path__) if module.name[0] != "_"}
    assert set(re.findall(r"forbear\.clients\.(\w+)", PAGE)) == modules


@pytest.mark.parametrize("line", LINES)
def test_an_export_works(line: str) -> None:
    """Each `forbear export` in the text prints something, and fails on nothing."""
    done = CliRunner().invoke(app, shlex.split(line)[1:], prog_name="forbear", catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert done.stdout


@pytest.mark.parametrize(("command", "expected"), RUNS, ids=[command for command, _ in RUNS])
def test_examples_that_run_a_program(command: str, expected: str, tmp_path: Path) -> None:
    """`forbear run` prints what the page says; stand-ins fail as gcloud and gsutil do, and the wait is none."""
    name = shlex.split(command.partition(" -- ")[2])[0]
    programs = {
        "forbear": f'#!/bin/sh\nexec {sys.executable} -m forbear "$@"\n',
        name: STAND_IN.format(name=name, message=expected.partition("\n")[0]),
    }
    for program, text in programs.items():
        (tmp_path / program).write_text(text)
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", command.replace("forbear run", "forbear run --constant 0")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        text=True,
        check=True,
    )
    check(expected, done.stdout)


@pytest.mark.parametrize(("command", "expected"), OTHERS, ids=[command for command, _ in OTHERS])
def test_examples(
    command: str, expected: str, one_cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command prints what stands below it and succeeds; `forbear curl` meets the embedded cloud and one 503."""
    monkeypatch.chdir(tmp_path)
    one_cloud.clear_faults()
    one_cloud.fault(Fault.status(503))
    arguments = shlex.split(command.replace(STORAGE, one_cloud.url))[1:]
    if arguments[0] == "curl":
        arguments += ["--service", "cloud_storage", "--constant", "0"]
    done = CliRunner().invoke(app, arguments, prog_name="forbear", catch_exceptions=False)
    check(expected, done.output)
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("policy", "method", "path", "headers", "status", "requests"),
    [
        # "all requests": only those that are safe to repeat, in the profiles of the pages, too.
        (cloud_storage.documented_2020, "GET", BUCKET, {}, 503, 2),
        (cloud_storage.documented_2020, "POST", f"/upload{BUCKET}/o?uploadType=media&name=a", {}, 503, 1),
        (cloud_storage.documented_2020, "POST", f"/upload{BUCKET}/o?uploadType=media&name=a", {}, 429, 1),
        (memorystore.documented, "GET", INSTANCE, {}, 503, 2),
        (memorystore.documented, "PATCH", INSTANCE, {}, 503, 1),
        (memorystore.documented, "POST", f"{INSTANCE}:failover", {}, 429, 1),
        (memorystore.documented, "POST", f"{INSTANCE}:upgrade", {}, 503, 1),
        (memorystore.documented, "POST", f"{INSTANCE}:export", {}, 503, 1),
        # If-Match
        (cloud_storage.documented, "PATCH", BUCKET, ETAG, 503, 2),
        (cloud_storage.policy, "PATCH", BUCKET, ETAG, 503, 1),
        # every 5xx
        (cloud_storage.documented, "GET", BUCKET, {}, 501, 2),
        (cloud_storage.policy, "GET", BUCKET, {}, 501, 1),
        (cloud_storage.policy, "GET", BUCKET, {}, 505, 1),
        (cloud_storage.policy, "GET", BUCKET, {}, 508, 1),
        # IAM's quotas
        (iam.documented, "GET", ACCOUNT, {}, 429, 1),
        (iam.policy, "GET", ACCOUNT, {}, 429, 2),
        (iam.policy, "GET", ACCOUNT, {}, 408, 2),
        # Python's table
        (cloud_storage.python_client, "GET", BUCKET, {}, 508, 2),
        (cloud_storage.python_client, "GET", BUCKET, {}, 408, 1),
    ],
)
def test_a_difference(
    policy: Policy, method: str, path: str, headers: dict[str, str], status: int, requests: int, one_cloud: Cloud
) -> None:
    """A profile sends a request that fails once as often as the table of differences says."""
    one_cloud.clear_faults()
    one_cloud.fault(Fault.status(status))
    before = len(one_cloud.requests)
    with virtual_time(seed=1), httpx.Client(transport=RetryTransport(policy), base_url=one_cloud.url) as http:
        http.request(method, path, headers=headers, json={} if method == "PATCH" else None)
    assert len(one_cloud.requests) - before == requests


@pytest.mark.parametrize("policy", [cloud_storage.documented, iam.documented, memorystore.documented])
def test_retry_after_is_obeyed_in_the_profiles_of_the_pages(policy: Policy, one_cloud: Cloud) -> None:
    """The wait is at least as long as the server says, though no page speaks of it."""
    path = BUCKET if policy is cloud_storage.documented else ACCOUNT if policy is iam.documented else INSTANCE
    one_cloud.clear_faults()
    one_cloud.fault(Fault.status(503, headers={"Retry-After": "30"}))
    with virtual_time(seed=1) as time, httpx.Client(transport=RetryTransport(policy), base_url=one_cloud.url) as http:
        http.get(path)
    assert len(time.slept) == 1
    assert time.slept[0] >= 30


def test_it_lists_the_deletions_that_can_undo_a_newer_change() -> None:
    """Each operation that is always repeated, although its row names such a change, stands there, and no other does."""
    section = PAGE.split("\n## Deletions\n")[1].split("\n## ")[0]
    rows = chain.from_iterable(
        chain.from_iterable(registry.service(name).tables().values())
        for name in ("cloud_storage", "iam", "resource_manager", "memorystore")
    )
    listed = set(re.findall(r"`((?:iam|cloudresourcemanager)\.[\w.]+)`", section))
    assert listed == {
        row.id for row in rows if row.safety is Safety.ALWAYS and re.search("(again|began|restored) ", row.effect)
    }
