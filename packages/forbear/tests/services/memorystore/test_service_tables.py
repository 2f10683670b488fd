"""The tables of Memorystore: complete, consistent, and every row of them answers as it says."""

from forbear.services.memorystore.service import RECOMMENDED
from forbear.tables.table import Row
from forbear_testkit.rows import for_each
from forbear_testkit.services import json_tables
from forbear_testkit.services.json_tables import check_calls, check_requests, check_row

HOSTS = {"redis": "redis.googleapis.com", "valkey": "memorystore.googleapis.com"}
ROWS = [(table, row) for table in HOSTS for row in RECOMMENDED.rows_of(table)]


@for_each(ROWS, "{1.id} of {0}")
def test_every_row_answers_as_it_says(table: str, row: Row) -> None:
    """Requests and calls, with each condition, without one, and with everything that only looks like one."""
    check_requests(RECOMMENDED, HOSTS[table], row)
    check_requests(RECOMMENDED, HOSTS[table].replace(".", ".europe-west1.rep.", 1), row)
    check_calls(RECOMMENDED, row)


@for_each(ROWS, "{1.id} of {0}")
def test_every_row_is_complete(table: str, row: Row) -> None:
    """Sources are named, duplicates of what is unsafe are described, and every GET is a read."""
    check_row(row)


def test_how_many_there_are() -> None:
    """Redis and Redis Cluster in one API, Valkey in another."""
    assert {table: len(RECOMMENDED.rows_of(table)) for table in HOSTS} == {"redis": 47, "valkey": 31}


def test_the_table_is_the_discovery_document() -> None:
    """A method that Google adds, moves or drops shows up here."""
    listed = {row.id: (row.where[0], json_tables.shape(row.where[1])) for row in RECOMMENDED.rows_of("redis")}
    assert listed == json_tables.published("redis.v1")


def test_whatever_starts_a_job_may_be_refused_for_it_the_second_time() -> None:
    """All that the discovery document answers with an operation; what makes a whole resource finds that it exists."""
    refused = {row.id for row in RECOMMENDED.rows_of("redis") if "FAILED_PRECONDITION" in row.maybe_done}
    others = {f"redis.projects.locations.{name}" for name in ("operations.get", "instances.create", "clusters.create")}
    assert refused == json_tables.starting_jobs("redis.v1") - others


def test_both_apis_refuse_the_same() -> None:
    """Whatever Valkey shares with Redis Cluster, by the name of the RPC, and its migrations."""
    valkey, redis = (
        {row.where[2].rpartition("/")[2].replace("Cluster", "Instance") for row in RECOMMENDED.rows_of(table)
         if "FAILED_PRECONDITION" in row.maybe_done}
        for table in ("valkey", "redis")
    )  # fmt: skip
    assert valkey - redis == {"StartMigration", "FinishMigration"}


def test_reads_are_rows_that_get_or_list() -> None:
    """Operations that get or list read; no other does."""
    for _, row in ROWS:
        name = row.id.rpartition("/")[2].rpartition(".")[2].lower()
        assert row.is_read is name.startswith(("get", "list")), row.id
