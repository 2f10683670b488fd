"""The example for Apache Airflow, which it installs into a folder of its own; `make soak` runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import forbear
from forbear_testkit.clients.wire import Seen, reply
from forbear_testkit.examples.load import FOLDER
from forbear_testkit.examples.service import LOST, Service

pytestmark = pytest.mark.soak


def _run(*command: str | Path, **environment: str) -> str:
    """Return the output of a program; fail with its own error text."""
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_report_is_published_once(tmp_path: Path) -> None:
    """A whole run of the DAG publishes one report, although one request fails and one response is lost."""
    uv, python = Path(sys.executable).with_name("uv"), tmp_path / "venv" / "bin" / "python"
    _run(uv, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv")
    _run(uv, "pip", "install", "--quiet", "--python", python, "apache-airflow>=3")
    reports: dict[str | None, str] = {}

    def publish(request: Seen) -> object:
        reports.setdefault(request.header("idempotency-key"), json.loads(request.body)["day"])
        return len(reports)

    with Service(publish) as service:
        environment = {
            "AIRFLOW_HOME": str(tmp_path / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(FOLDER),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(Path(forbear.__file__).parents[1]),
            "REPORTS_URL": service.url,
        }
        _run(python, "-m", "airflow", "db", "migrate", **environment)
        service.fail(LOST, reply(500))
        output = _run(python, FOLDER / "airflow_report.py", **environment)
        assert [request.line for request in service.seen] == ["POST /reports HTTP/1.1"] * 3
    assert len(reports) == 1
    assert "state=success" in output
