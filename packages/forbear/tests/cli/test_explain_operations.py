"""`forbear explain --operations`: the tables as they are, for people and for programs."""

import csv
import io
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from forbear.answers import tables
from forbear.services import iam, memorystore, resource_manager
from forbear.services.aws import table as corrections
from forbear.services.cloud_storage import json_api, xml_api
from forbear.services.cloud_storage.service import rpc_operations
from forbear.services.redis import service
from forbear.services.redis import table as commands
from forbear.tables import operations, table
from forbear.tables.service import TableService
from forbear_testkit.cli.running import FORBEAR, Invoke

Rows = tuple[object, ...]


def _rows(service: TableService, *files: str) -> Rows:
    return tuple(row for file in files for row in service.rows_of(file))


def _load_aws(path: Path) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        named = ((line, *line["operation"].split(".")) for line in csv.DictReader(file))
        lines = ({**line, "service": service, "operations": name} for line, service, name in named)
        return _plain(corrections.read_rows(lines))


def _plain(rows: Iterable[corrections.Correction]) -> Rows:
    """Rows by their names, without conditions: those are functions, made of `safe_if`."""
    return tuple(row._replace(conditions=()) for row in sorted(rows, key=lambda row: (row.service, row.pattern)))


_aws = (row for exact, patterns in corrections.rows().values() for row in (*exact.values(), *patterns))

TABLES: dict[str, tuple[Rows, Callable[[Path], Rows]]] = {
    "cloud_storage.json": (json_api.operations(), lambda path: table.load(path, ("method", "path"), ("settled_by",))),
    "cloud_storage.xml": (
        xml_api.operations(),
        lambda path: table.load(path, ("method", "resource"), ("query", "header")),
    ),
    "cloud_storage.grpc": (rpc_operations(), lambda path: table.load(path, ("stream",))),
    "iam": (_rows(iam.RECOMMENDED, "v1", "v2", "v3", "credentials", "everywhere"), operations.rows),
    "memorystore": (_rows(memorystore.RECOMMENDED, "redis", "valkey"), operations.rows),
    "resource_manager": (_rows(resource_manager.RECOMMENDED, "operations"), operations.rows),
    "redis": (service.commands(), commands.load),
    "aws": (_plain(_aws), _load_aws),
}
"""The rows of every table, and how its file is read."""


def test_every_table_is_tested() -> None:
    """The tables below are all that can be listed."""
    assert set(TABLES) == set(tables.names())


@pytest.mark.parametrize("name", TABLES)
def test_csv_is_the_table(name: str, invoke: Invoke, tmp_path: Path) -> None:
    """The printed CSV, loaded as a table, equals the table."""
    rows, load = TABLES[name]
    path = tmp_path / "table.csv"
    path.write_text(invoke("explain", "--operations", name, "--csv").stdout, encoding="utf-8")
    assert load(path) == rows


@pytest.mark.parametrize("name", TABLES)
def test_json_has_the_same_rows(name: str, invoke: Invoke) -> None:
    """JSON has the columns of the CSV, with the conditions and responses as lists."""
    documents = json.loads(invoke("explain", "--operations", name, "--json").stdout)
    lines = list(csv.DictReader(io.StringIO(invoke("explain", "--operations", name, "--csv").stdout)))
    assert len(documents) == len(lines)
    for document, line in zip(documents, lines, strict=True):
        assert document["service"] == name.partition(".")[0]
        assert document["operation"] == next(iter(line.values()))
        assert bool(document["conditions"]) == (line["safety"] == "conditional")
        assert document.items() >= {key: value for key, value in line.items() if key != "maybe_done"}.items()


@pytest.mark.parametrize("name", TABLES)
def test_the_text_names_every_operation(name: str, invoke: Invoke) -> None:
    """People see each operation, when it is safe, and how many there are."""
    rows, _ = TABLES[name]
    lines = invoke("explain", "--operations", name).stdout.splitlines()
    assert lines[0].split()[:2] == ["operation", "safe"]
    assert lines[-1] == f"{len(rows)} operations"
    if name != "aws":  # which has an iam, too
        assert sum(line.startswith(("storage.", "xml.", "google.", "iam", "redis.")) for line in lines) in (
            0,
            len(rows),
        )


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (
            ("--operations", "s4"),
            "error: no such table: s4\nhint: the tables are cloud_storage.json, cloud_storage.xml, ",
        ),
        (("--operations", "cloud_storage"), "error: no such table: cloud_storage\n"),
        (("--operations", ""), "error: no such table: \n"),
        (("--operations", "iam", "GET", "https://h/"), "error: `--operations` lists a whole table\n"),
        (("--operations", "iam", "--csv", "--json"), "error: `--json` does not go with `--csv`\n"),
        (("--operations", "iam", "--profile", "documented"), "error: `--profile` does not go with --operations\n"),
        (("--operations", "iam", "--har", "x"), "error: `--har` does not go with --operations\n"),
    ],
)
def test_bad_input(args: tuple[str, ...], text: str, invoke: Invoke) -> None:
    """Bad input is refused in words, with a cure and exit code 2."""
    done = invoke("explain", *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr
    assert "\nhint: " in done.stderr


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_a_reader_that_has_seen_enough(form: str, env: dict[str, str]) -> None:
    """When stdout is closed early, a long table ends quietly."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*FORBEAR, "explain", "--operations", "redis", form],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=env,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")
