"""Web pages cannot reach the cloud: it checks the Host of every request, and administration allows no Origin."""

import httpx
import pytest

from forbear_cloud import Cloud
from forbear_testkit.cloud.sockets import talk

GOOD = [
    "localhost", "localhost:1", "LOCALHOST", "localhost.", "127.0.0.1:80", "127.8.9.1", "[::1]:4443", "[::1]",
    "bkt.localhost:9000", "storage.googleapis.com", "bkt.storage.googleapis.com:443", "www.googleapis.com",
    "iam.googleapis.com", "storage.mtls.googleapis.com", "gcs.test", "GCS.test:99", "gcs.test.",
    "only.test:5",
]  # fmt: skip
BAD = [
    "evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "evil-googleapis.com",
    "storage.googleapis.com.evil.example", "notlocalhost", "0.0.0.0", "192.168.1.1", "[::]", "[::ffff:10.0.0.1]", "",
    "localhost@evil.example", "localhost/x", "only.test", "only.test:6", "x.gcs.test", "localhost:80:80", "a b",
    "localhost,evil.example",
]  # fmt: skip


@pytest.mark.parametrize(("hosts", "refused"), [(GOOD, False), (BAD, True)], ids=["good", "bad"])
def test_only_allowed_hosts_pass(hosts: list[str], refused: bool) -> None:
    """Loopback, Google's hosts and the allowed ones pass, in the header or in the target; no others do."""
    with Cloud(allowed_hosts=["Gcs.test", "only.test:5"]) as cloud:
        cloud.store.create_bucket("bkt")
        for host in hosts:
            answer = talk(cloud, f"GET /_cloud/health HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (host, answer[9:12] in (b"403", b"400")) == (host, refused)
            if not host or set(host) & set(" /"):
                continue
            target = f"GET http://{host}/_cloud/health HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            assert (host, talk(cloud, target)[9:12] == b"403") == (host, refused)
        assert cloud.effects.total == cloud.requests.total == 0


def test_a_refused_host_has_no_effect(cloud: Cloud) -> None:
    """A write to another host is refused before its body is read, with a message that says what to do."""
    head = b"POST /upload/storage/v1/b/bkt/o?uploadType=media&name=o HTTP/1.1\r\nHost: evil.example\r\n"
    answer = talk(cloud, head + b"Content-Length: 5\r\n\r\nhello")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"`allowed_hosts`, --allow-host" in answer
    assert cloud.store.bucket("bkt").live("o") is None


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "reset"), ("POST", "faults"), ("DELETE", "faults"), ("GET", "state"), ("GET", "nothing")],
)
def test_no_page_administers(cloud: Cloud, http: httpx.Client, origin: str, method: str, path: str) -> None:
    """A request with an Origin, as browsers send, is refused: nothing is reset, and no fault is added."""
    body = b'{"action": "status", "code": 503}'
    response = http.request(method, f"/_cloud/{path}", content=body, headers={"Origin": origin})
    assert (response.status_code, response.json()["error"]["errors"][0]["reason"]) == (403, "originNotAllowed")
    assert "access-control-allow-origin" not in response.headers
    assert cloud.pending_faults == 0
    assert cloud.store.bucket("bkt").name == "bkt"


def test_allowed_hosts_is_a_list() -> None:
    """A single string is refused, because it would count as a list of letters."""
    with pytest.raises(TypeError, match=r"`allowed_hosts` must be a sequence of names, got 'gcs\.test': write it as"):
        Cloud(allowed_hosts="gcs.test")
