"""azure-core with the retries that all its clients share, and azure-storage-blob, which has its own."""

from functools import partial
from typing import Any

import requests

from forbear.clients.requests import RetryAdapter
from forbear_testkit.lazily import Library as Lazy
from tools.sdk_repeats.origin import Request, Response
from tools.sdk_repeats.trials import Library, Operation

core: Any = Lazy("azure.core")
policies: Any = Lazy("azure.core.pipeline.policies")
rest: Any = Lazy("azure.core.rest")
storage: Any = Lazy("azure.storage.blob")
transport: Any = Lazy("azure.core.pipeline.transport")


def _transport(url: str, mode: str) -> dict[str, Any]:
    """Return the options for a mode: no retries, and forbear's adapter in the session."""
    if mode == "default":
        return {}
    options: dict[str, Any] = {"retry_total": 0}
    if mode == "forbear":
        session = requests.Session()
        session.mount(url, RetryAdapter())
        options["transport"] = transport.RequestsTransport(session=session, session_owner=False)
    return options


def _make_pipeline(url: str, mode: str) -> Any:
    options = _transport(url, mode)
    policy = policies.RetryPolicy(**({"retry_total": 0} if mode != "default" else {}))
    options.pop("retry_total", None)
    client = core.PipelineClient(url, policies=[policy], **options)
    return partial(_send, client, url)


def _send(client: Any, url: str, method: str) -> None:
    client.send_request(rest.HttpRequest(method, f"{url}/orders/1", json={"a": 1})).raise_for_status()


def _make_blob(url: str, mode: str) -> Any:
    account = {"account_name": "a", "account_key": "a2V5"}
    return storage.BlobClient(f"{url}/a", "c", "b", credential=account, **_transport(url, mode))


def _respond(request: Request) -> Response:
    headers = (
        ("ETag", '"1"'), ("Last-Modified", "Thu, 26 Nov 2026 00:00:00 GMT"), ("x-ms-request-id", "r"),
        ("x-ms-snapshot", "2026-11-26T00:00:00.0000000Z"), ("x-ms-lease-id", "l"), ("x-ms-copy-id", "c"),
        ("x-ms-copy-status", "success"), ("x-ms-blob-append-offset", "0"), ("x-ms-blob-committed-block-count", "1"),
    )  # fmt: skip
    statuses = {"comp=metadata": 200, "comp=seal": 200, "comp=copy": 202}
    accepted = 202 if request.line.startswith("DELETE") or "x-ms-copy-source" in request.headers else 201
    return Response(next((status for text, status in statuses.items() if text in request.line), accepted), b"", headers)


LIBRARIES = (
    Library(
        "azure-core",
        ("azure-core",),
        _make_pipeline,
        "RetryPolicy(retry_total=0), or retry_total=0 for a client",
        "RequestsTransport(session=session), a session with RetryAdapter()",
        (
            Operation("POST", lambda send: send("POST"), "depends on the service"),
            Operation("PATCH", lambda send: send("PATCH"), "depends on the service"),
            Operation("PUT", lambda send: send("PUT"), ""),
            Operation("DELETE", lambda send: send("DELETE"), ""),
        ),
        lambda request: Response(200, b"{}", (("Content-Type", "application/json"),)),
    ),
    Library(
        "azure-storage-blob",
        ("azure-storage-blob", "azure-core"),
        _make_blob,
        "BlobServiceClient(url, retry_total=0)",
        "RequestsTransport(session=session), a session with RetryAdapter()",
        (
            Operation("append_block", lambda blob: blob.append_block(b"line"), "appends twice"),
            Operation("create_snapshot", lambda blob: blob.create_snapshot(), "a second snapshot"),
            Operation("acquire_lease", lambda blob: blob.acquire_lease(), "fails, and the lease is lost to the caller"),
            Operation("start_copy_from_url", lambda blob: blob.start_copy_from_url("https://a/b"), "a second copy"),
            Operation("upload_blob, overwrite", lambda blob: blob.upload_blob(b"x", overwrite=True), ""),
            Operation("upload_blob", lambda blob: blob.upload_blob(b"x"), "fails, although it has written"),
            Operation("stage_block", lambda blob: blob.stage_block("1", b"x"), ""),
            Operation("delete_blob", lambda blob: blob.delete_blob(), "fails, although it has deleted"),
        ),
        _respond,
        note="The writes of Blob Storage are PUTs, also those that append. forbear has no table of Azure, and repeats "
        "a PUT as RFC 9110 allows. Here `retry_total=0` without forbear is the strict choice.",
    ),
)
