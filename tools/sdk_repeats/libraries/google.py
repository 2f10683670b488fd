"""The clients of Google that speak REST: Cloud Storage and BigQuery."""

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import forbear
from forbear_testkit.lazily import Library as Lazy
from tools.sdk_repeats.origin import Request, Response
from tools.sdk_repeats.trials import Guarded, Library, Operation

bigquery: Any = Lazy("google.cloud.bigquery")
credentials: Any = Lazy("google.auth.credentials")
storage: Any = Lazy("google.cloud.storage")
_JSON = (("Content-Type", "application/json"),)


class _Google(NamedTuple):
    """A client, and the keywords that each call gets: `retry=None` turns the retries off."""

    client: Any
    words: dict[str, Any]


def _options(url: str) -> dict[str, Any]:
    return {"project": "p", "credentials": credentials.AnonymousCredentials(), "client_options": {"api_endpoint": url}}


def _make_storage(url: str, mode: str) -> _Google:
    client = storage.Client(**_options(url))
    if mode == "forbear":
        forbear.install(client)
    return _Google(client, {"retry": None} if mode == "off" else {})


def _make_bigquery(url: str, mode: str) -> _Google:
    client = bigquery.Client(**_options(url))
    return _Google(Guarded(client) if mode == "forbear" else client, {} if mode == "default" else {"retry": None})


def _query(name: str) -> Callable[[Any], object]:
    """Return a call that runs an INSERT; its second layer of retries goes with the first."""

    def call(google: Any) -> object:
        words = {"retry": None, "job_retry": None} if google.words else {}
        return getattr(google.client, name)("INSERT d.t VALUES (1)", **words)

    return call


def _blob(name: str, *arguments: Any, **parameters: Any) -> Callable[[Any], object]:
    """Return a call of a method of a blob."""

    def call(google: Any) -> object:
        blob = google.client.bucket("b").blob("o")
        blob.metadata = {"a": "b"}
        return getattr(blob, name)(*arguments, **parameters, **google.words)

    return call


def _compose(google: Any) -> object:
    bucket = google.client.bucket("b")
    return bucket.blob("o").compose([bucket.blob("a"), bucket.blob("b")], **google.words)


def _copy(google: Any) -> object:
    bucket = google.client.bucket("b")
    return bucket.copy_blob(bucket.blob("o"), bucket, "p", **google.words)


def _respond_storage(request: Request) -> Response:
    text = {"kind": "storage#object", "name": "o", "done": True, "resource": {"name": "o"}, "secret": "s"}
    return Response(200, json.dumps({**text, "metadata": {"accessId": "a"}}).encode(), _JSON)


def _respond_bigquery(request: Request) -> Response:
    job = {"projectId": "p", "jobId": "j", "location": "US"}
    table = {"projectId": "p", "datasetId": "d", "tableId": "t"}
    text: dict[str, Any] = {
        "jobReference": job, "tableReference": table, "datasetReference": table, "status": {"state": "DONE"},
        "configuration": {"query": {}, "jobType": "QUERY"}, "jobComplete": True, "schema": {"fields": []}, "rows": [],
        "totalRows": "0",
    }  # fmt: skip
    return Response(200, json.dumps(text).encode(), _JSON)


def _key_of_bigquery(request: Request) -> str | None:
    """Return the id of a request, a job or a row: a second job with the id is refused, and the others are dropped."""
    found = re.search(rb'"(?:requestId|jobId|insertId)": ?"([^"]+)"', request.body)
    return None if found is None else found[1].decode()


_WRITES = "overwrites what came meanwhile"
_TABLE = "p.d.t"

LIBRARIES = (
    Library(
        "google-cloud-storage",
        ("google-cloud-storage",),
        _make_storage,
        "retry=None in each call",
        "forbear.install(client)",
        (
            Operation("Blob.upload_from_string", _blob("upload_from_string", b"x"), _WRITES, "POST /upload"),
            Operation(
                "Blob.upload_from_string, if_generation_match=0",
                _blob("upload_from_string", b"x", if_generation_match=0),
                "",
                "POST /upload",
            ),
            Operation("Blob.delete", _blob("delete"), "deletes what came meanwhile"),
            Operation("Blob.patch", _blob("patch"), _WRITES),
            Operation("Blob.compose", _compose, _WRITES),
            Operation("Bucket.copy_blob", _copy, _WRITES),
            Operation(
                "Client.create_bucket",
                lambda google: google.client.create_bucket("b", **google.words),
                "fails, although it has created",
            ),
            Operation(
                "Client.create_hmac_key",
                lambda google: google.client.create_hmac_key("a@example.com", **google.words),
                "a second key",
            ),
        ),
        _respond_storage,
    ),
    Library(
        "google-cloud-bigquery",
        ("google-cloud-bigquery",),
        _make_bigquery,
        "retry=None in each call, and job_retry=None in queries",
        "@forbear.retry(forbear.transient), with retry=None",
        (
            Operation("Client.query", _query("query"), ""),
            Operation("Client.query_and_wait", _query("query_and_wait"), ""),
            Operation(
                "Client.insert_rows_json",
                lambda google: google.client.insert_rows_json(_TABLE, [{"a": 1}], **google.words),
                "",
            ),
            Operation(
                "Client.insert_rows_json, row_ids=[None]",
                lambda google: google.client.insert_rows_json(_TABLE, [{"a": 1}], row_ids=[None], **google.words),
                "a second row",
            ),
            Operation(
                "Client.query, retry=None alone",
                lambda google: google.client.query(
                    "INSERT d.t VALUES (1)", **({"job_retry": None} | google.words if google.words else {"retry": None})
                ),
                "runs twice, as another job",
            ),
            Operation(
                "Client.create_table",
                lambda google: google.client.create_table(_TABLE, **google.words),
                "fails, although it has created",
            ),
            Operation(
                "Client.delete_table",
                lambda google: google.client.delete_table(_TABLE, **google.words),
                "fails, although it has deleted",
            ),
            Operation(
                "Client.update_table",
                lambda google: google.client.update_table(bigquery.Table(_TABLE), ["description"], **google.words),
                _WRITES,
            ),
        ),
        _respond_bigquery,
        _key_of_bigquery,
        "BigQuery refuses a second job with the same id, and drops a second request or row with the same id. The "
        "client fills these ids.",
    ),
)
