"""The tables of IAM: complete, consistent, and every row of them answers as it says."""

import pytest

from forbear.services.iam.service import RECOMMENDED
from forbear.tables.table import Row
from forbear_testkit.rows import for_each
from forbear_testkit.services import json_tables
from forbear_testkit.services.json_tables import check_calls, check_requests, check_row

HOSTS = {
    "v1": "iam.googleapis.com", "v2": "iam.mtls.googleapis.com:443", "v3": "IAM.googleapis.com",
    "credentials": "iamcredentials.googleapis.com",
}  # fmt: skip
ROWS = [(table, row) for table in HOSTS for row in RECOMMENDED.rows_of(table)]


@for_each(ROWS, "{1.id} of {0}")
def test_every_row_answers_as_it_says(table: str, row: Row) -> None:
    """Requests and calls, with each condition, without one, and with everything that only looks like one."""
    check_requests(RECOMMENDED, HOSTS[table], row)
    if table != "credentials":  # signBlob and signJwt are there, too, under the same paths
        check_requests(RECOMMENDED, "localhost:8080", row)
    check_calls(RECOMMENDED, row)


@for_each(ROWS, "{1.id} of {0}")
def test_every_row_is_complete(table: str, row: Row) -> None:
    """Sources are named, duplicates of what is unsafe are described, and every GET is a read."""
    check_row(row)


def test_how_many_there_are() -> None:
    """Of the three services of v3 the one way to look at an operation stands in one row."""
    counts = {table: len(RECOMMENDED.rows_of(table)) for table in HOSTS}
    assert counts == {
        "v1": 137,
        "v2": 6,
        "v3": 19,
        "credentials": 7,
    }


@pytest.mark.parametrize(("table", "document"), [("v1", "iam.v1"), ("credentials", "iamcredentials.v1")])
def test_the_table_is_the_discovery_document(table: str, document: str) -> None:
    """A method that Google adds, moves or drops shows up here."""
    listed = {row.id: (row.where[0], json_tables.shape(row.where[1])) for row in RECOMMENDED.rows_of(table)}
    assert listed == json_tables.published(document)


def test_the_table_of_deny_policies_has_the_paths_of_the_discovery_document() -> None:
    """Its rows go by the names of RPCs, so the paths are compared."""
    listed = {(row.where[0], json_tables.shape(row.where[1])) for row in RECOMMENDED.rows_of("v2")}
    assert listed == set(json_tables.published("iam.v2").values())


def test_reads_are_rows_that_get_list_test_query_or_search() -> None:
    """Operations that get, list, test, query or search read, whatever their method; no other does."""
    reads = ("get", "list", "test", "lint", "query", "search")
    for _, row in ROWS:
        name = row.id.rpartition("/")[2].rpartition(".")[2].lower()
        assert row.is_read is name.startswith(reads), row.id
