"""Batches: the cloud performs each request on its own, with its own effect, precondition and error."""

import json

import httpx
import pytest

from forbear_cloud import Cloud, Fault

OBJECTS = "/storage/v1/b/bkt/o"


def part(line: str, body: str = "", content_id: str = "<a+1>", *headers: str) -> str:
    """Return one part of a batch."""
    fields = "".join(f"{header}\r\n" for header in headers)
    outer = f"Content-Type: application/http\r\nContent-ID: {content_id}\r\n\r\n"
    return f"{outer}{line} HTTP/1.1\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}"


def send(http: httpx.Client, *parts: str, path: str = "/batch/storage/v1", **headers: str) -> httpx.Response:
    """Send a batch."""
    body = "".join(f"--x\r\n{each}\r\n" for each in parts) + "--x--\r\n"
    return http.post(path, content=body, headers={"Content-Type": "multipart/mixed; boundary=x", **headers})


def statuses(response: httpx.Response) -> list[int]:
    """Return the statuses of the responses in a batch."""
    assert response.status_code == 200
    return [int(each[:3]) for each in response.text.split("HTTP/1.1 ")[1:]]


@pytest.mark.parametrize("path", ["/batch", "/batch/storage/v1"])
def test_each_for_itself(cloud: Cloud, http: httpx.Client, path: str) -> None:
    """A request that fails does not stop the others; each effect is logged and each precondition checked."""
    for name in "abc":
        cloud.store.put("bkt", name, b"x")
    response = send(
        http,
        part(f"DELETE {OBJECTS}/a"),
        part(f"DELETE {OBJECTS}/b?ifGenerationMatch=1"),
        part(f"PATCH {OBJECTS}/c", json.dumps({"contentType": "a/b"}), "<x+2>", "Content-Type: application/json"),
        part(f"GET {cloud.url}{OBJECTS}/nope"),
        part("GET /storage/v1/nowhere"),
        path=path,
    )
    assert statuses(response) == [204, 412, 200, 404, 404]
    assert "Content-ID: <response-x+2>" in response.text
    assert [(each.operation, each.resource) for each in cloud.effects] == [
        ("storage.objects.delete", "bkt/a"),
        ("storage.objects.patch", "bkt/c"),
    ]
    assert cloud.store.object("bkt", "c").fields["contentType"] == "a/b"
    assert [request.operation for request in cloud.requests] == ["storage.batch"]


def test_lost_and_refused_batches(cloud: Cloud, http: httpx.Client) -> None:
    """A fault applies to the whole batch: before it no request is performed, after it all are."""
    for name in "ab":
        cloud.store.put("bkt", name, b"x")
    cloud.fault(Fault.status(503, operation="storage.batch"), Fault.reset(when="after", operation="storage.batch"))
    parts = [part(f"DELETE {OBJECTS}/{name}") for name in "ab"]
    assert send(http, *parts).status_code == 503
    assert cloud.effects.count() == 0
    with pytest.raises(httpx.ReadError):
        send(http, *parts)
    assert cloud.effects.count("storage.objects.delete") == 2
    assert statuses(send(http, *parts)) == [404, 404]


@pytest.mark.parametrize(
    "inner",
    [
        part("POST /batch/storage/v1"),
        part("POST /upload/storage/v1/b/bkt/o?uploadType=media&name=n", "x"),
        part(f"GET {OBJECTS}/o?alt=media"),
        part("GET /bkt/o"),
        part("GET /v1/projects/p/serviceAccounts"),
    ],
)
def test_what_is_no_part(cloud: Cloud, http: httpx.Client, inner: str) -> None:
    """A batch inside a batch, a request for bytes and a request of another API fail, each on its own."""
    cloud.store.put("bkt", "o", b"x")
    assert statuses(send(http, inner, part(f"GET {OBJECTS}/o"))) == [400, 200]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "multipart/mixed; boundary=x", 400),
        (b"--x--", "multipart/mixed; boundary=x", 400),
        (b"--x\r\n\r\n", "multipart/mixed; boundary=x", 400),
        (b"--x\r\nContent-Type: text/plain\r\n\r\nGET /\r\n\r\n--x--", "multipart/mixed; boundary=x", 400),
        (b"--x\r\nContent-Type: application/http\r\n\r\n--x--", "multipart/mixed; boundary=x", 400),
        (b"--x\r\nContent-Type: application/http\r\n\r\nGET http://[\r\n\r\n--x--", "multipart/mixed; boundary=x", 403),
        (part("GET http://evil.example/").join(("--x\r\n", "\r\n--x--")).encode(), "multipart/mixed; boundary=x", 403),
        (b"--x\r\n" * 200 + b"--x--", "multipart/mixed; boundary=x", 400),
        (bytes(11 * 1024**2), "multipart/mixed; boundary=x", 413),
        (b"{}", "application/json", 400),
        (b"--x--", "multipart/mixed", 400),
    ],
)
def test_no_batches(cloud: Cloud, http: httpx.Client, body: bytes, kind: str, status: int) -> None:
    """A malformed batch is refused as a whole and has no effect."""
    assert http.post("/batch/storage/v1", content=body, headers={"Content-Type": kind}).status_code == status
    assert cloud.effects.count() == 0


def test_too_many(http: httpx.Client) -> None:
    """A batch with more than 100 requests is refused."""
    get = part("GET /storage/v1/b/bkt")
    assert len(statuses(send(http, *[get] * 100))) == 100
    assert send(http, *[get] * 101).status_code == 400


def test_a_part_may_name_the_allowed_host_of_its_batch() -> None:
    """Clients write whole URLs into the parts, also if they reach the cloud by a name that the user allowed."""
    with Cloud(allowed_hosts=["gcs"]) as cloud, httpx.Client(base_url=cloud.url, headers={"Host": "gcs:4443"}) as http:
        cloud.store.create_bucket("bkt")
        cloud.store.put("bkt", "o", b"x")
        parts = part(f"GET http://gcs:4443{OBJECTS}/o"), part(f"GET {OBJECTS}/o")
        assert statuses(send(http, *parts)) == [200, 200]
        assert send(http, part("GET http://evil.example/o")).status_code == 403
