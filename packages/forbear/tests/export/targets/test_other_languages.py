"""Tests with packages of other systems, which they install into folders of their own; `make soak` runs them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forbear import export
from forbear.core.backoff import Exponential
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault

pytestmark = pytest.mark.soak

SCRIPT = """
// The client switches retries off and on again for each call that must not be repeated, with one switch for all calls.
const switchedBack = () => new Promise((resolve) => setImmediate(resolve));
const outcome = async (promise) => {
  const told = await promise.then(() => 'done', (error) => error.code);
  await switchedBack();
  return told;
};
(async () => {
  const bucket = storage.bucket('b');
  const told = {};
  const begun = Date.now();
  told.read = await outcome(bucket.file('a').getMetadata());
  told.waited = Math.round((Date.now() - begun) / 1000) >= 2;  // the multiplier, which is its first wait
  told.conditional = await outcome(bucket.file('a').delete({ifGenerationMatch: GENERATION}));
  told.unconditional = await outcome(bucket.file('c').delete());
  console.log(JSON.stringify(told));
})();
"""
READ_BOTO = """
import json, sys
sys.path.insert(0, sys.argv[1])
from boto.pyami.config import Config
config = Config(path=sys.argv[2])
print(json.dumps([config.getint("Boto", "num_retries", 23), config.getint("Boto", "max_retry_delay", 32)]))
"""


def run(*command: str, cwd: Path, **env: str) -> str:
    """Return the output of a program; fail with its own error text."""
    env |= os.environ
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def program(name: str) -> str:
    """The path of a program; without it the test fails, for soaking is when it is to be run."""
    found = shutil.which(name)
    assert found is not None, f"{name} is not installed: install Node.js with npm, or run `make test` without the soak"
    return found


def test_the_nodejs_client_runs_the_snippet(tmp_path: Path) -> None:
    """Reads and a delete with its condition are repeated by the npm package, a delete without it is not."""
    run(program("npm"), "install", "--no-audit", "--no-fund", "@google-cloud/storage@7", cwd=tmp_path)
    policy = cloud_storage.documented.with_backoff(Exponential(1, 2, 2, "documented"))
    with Cloud() as cloud:
        cloud.store.create_bucket("b")
        generation = cloud.store.put("b", "a", b"x").generation
        cloud.store.put("b", "c", b"x")
        for method in ("GET", "DELETE"):
            cloud.fault(Fault.status(503, times=1, method=method, path="/o/a"))
        cloud.fault(Fault.status(503, times=1, method="DELETE", path="/o/c"))
        script = export.nodejs(policy).value + SCRIPT.replace("GENERATION", str(generation))
        (tmp_path / "snippet.js").write_text(script)
        told: Any = json.loads(
            run(
                program("node"),
                "snippet.js",
                cwd=tmp_path,
                STORAGE_EMULATOR_HOST=f"{cloud.url}/storage/v1",  # it adds no path to this one
                GOOGLE_CLOUD_PROJECT="p",
            )
        )
        assert told == {"read": "done", "waited": True, "conditional": "done", "unconditional": 503}
        assert [(request.method, request.status) for request in cloud.requests] == [
            ("GET", 503),
            ("GET", 200),
            ("DELETE", 503),
            ("DELETE", 204),
            ("DELETE", 503),
        ]


def test_gsutils_own_parser_reads_the_boto_file(tmp_path: Path) -> None:
    """That of the boto which gsutil brings along; of gsutil nothing else is needed."""
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "packages"))
    run(*pip, "gsutil", cwd=tmp_path)
    run(*pip, "six", cwd=tmp_path)
    (tmp_path / ".boto").write_text(export.boto(cloud_storage.gsutil).value)
    boto = tmp_path / "packages" / "gslib" / "vendored" / "boto"
    told = run(sys.executable, "-c", READ_BOTO, str(boto), str(tmp_path / ".boto"), cwd=tmp_path)
    assert json.loads(told) == [23, 60]
