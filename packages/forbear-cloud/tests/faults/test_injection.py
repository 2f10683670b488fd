"""Scripted faults: each has its effect at its moment, on the requests that match, as often as it should."""

import socket
import threading

import httpx
import pytest

from forbear_cloud import Cloud, Fault

UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"
MEDIA = "/download/storage/v1/b/bkt/o/o?alt=media"
INSERT = "storage.objects.insert"


def ask(cloud: Cloud, path: str) -> socket.socket:
    """Open a bare connection and send a GET."""
    host, port = cloud.url.removeprefix("http://").split(":")
    sock = socket.create_connection((host, int(port)), timeout=20)
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return sock


@pytest.mark.parametrize(("when", "effects"), [("before", 0), ("after", 1)])
def test_a_status_replaces_the_response(cloud: Cloud, http: httpx.Client, when: str, effects: int) -> None:
    """A status replaces the response, with or without the effect, in the API's form and with the given headers."""
    fault = Fault.from_json({"action": "status", "code": 429, "when": when, "retry_after": 7, "headers": {"X-A": "b"}})
    cloud.fault(fault)
    response = http.post(UPLOAD, content=b"x")
    assert (response.status_code, response.headers["retry-after"], response.headers["x-a"]) == (429, "7", "b")
    assert response.json()["error"]["errors"][0]["reason"] == "rateLimitExceeded"
    assert cloud.effects.count(INSERT) == effects
    assert http.post(UPLOAD, content=b"x").status_code == 200
    assert cloud.requests[0].fault == f"status 429 {when}"
    assert (cloud.requests[0].status, cloud.requests[1].fault) == (429, None)


@pytest.mark.parametrize(("given", "sent"), [(1, "1"), (2.0, "2"), (0.5, "0.5"), (10_000_000, "10000000"), ("x", "x")])
def test_retry_after(cloud: Cloud, http: httpx.Client, given: float | str, sent: str) -> None:
    """A number of seconds is written out in full, and text is sent unchanged, even if it is invalid."""
    cloud.fault(Fault.status(503, retry_after=given))
    assert http.get("/storage/v1/b/bkt").headers["retry-after"] == sent


def test_status_with_a_body_and_words(http: httpx.Client, cloud: Cloud) -> None:
    """Reason, message and even the whole body can be given, and Retry-After can be a date."""
    cloud.fault(
        Fault.status(403, reason="userRateLimitExceeded", message="slow down"),
        Fault.status(
            502, body="<html>", headers={"Content-Type": "text/html"}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"
        ),
    )
    first, second = http.get("/storage/v1/b/bkt"), http.get("/storage/v1/b/bkt")
    assert first.json()["error"]["errors"][0] == {
        "message": "slow down",
        "domain": "global",
        "reason": "userRateLimitExceeded",
    }
    assert (second.text, second.headers["content-type"]) == ("<html>", "text/html")
    assert second.headers["retry-after"].startswith("Wed")


@pytest.mark.parametrize("action", ["reset", "close"])
@pytest.mark.parametrize(("when", "effects"), [("before", 0), ("after", 1)])
def test_lost_responses(cloud: Cloud, http: httpx.Client, action: str, when: str, effects: int) -> None:
    """The connection ends without a response, by RST or by FIN, before or after the effect."""
    cloud.fault(Fault.from_json({"action": action, "when": when}))
    expected = httpx.ReadError if action == "reset" else httpx.RemoteProtocolError
    with pytest.raises(expected):
        http.post(UPLOAD, content=b"x")
    assert cloud.effects.count(INSERT) == effects
    assert cloud.requests[0].status is None


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("keep", [0, 1, 100_000, 3_000_000])
def test_truncate_delivers_exactly(cloud: Cloud, reset: bool, keep: int) -> None:
    """All headers and exactly the given number of bytes arrive, even if the connection ends with an RST."""
    cloud.store.put("bkt", "o", bytes(4_000_000))
    cloud.fault(Fault.truncate(keep, reset=reset))
    with ask(cloud, MEDIA) as sock:
        got, broken = bytearray(), False
        try:
            while piece := sock.recv(65_536):
                got += piece
        except ConnectionResetError:
            broken = True
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    assert b"content-length: 4000000" in head.lower()
    assert (len(body), broken) == (keep, reset)


def test_truncate_a_share(cloud: Cloud, http: httpx.Client) -> None:
    """A share cuts the body in proportion to its size."""
    cloud.store.put("bkt", "o", b"x" * 1000)
    cloud.fault(Fault.truncate(share=0.25))
    with http.stream("GET", MEDIA) as response:
        pieces = response.iter_raw()
        assert len(next(pieces)) == 250
        with pytest.raises(httpx.RemoteProtocolError):
            next(pieces)


def test_stall_lasts_until_the_client_goes(cloud: Cloud, http: httpx.Client) -> None:
    """The beginning of the body arrives, then nothing; other connections are served meanwhile."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(Fault.stall(2))
    with ask(cloud, MEDIA) as sock:
        got = b""
        while not got.endswith(b"\r\n\r\nhe"):
            got += sock.recv(65_536)
        assert http.get("/storage/v1/b/bkt").status_code == 200
        sock.settimeout(0.02)
        with pytest.raises(TimeoutError):
            sock.recv(1)


def test_stall_has_a_limit(cloud: Cloud, http: httpx.Client) -> None:
    """A client that waits sees the connection close after the limit."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(Fault.stall(limit=0.02))
    with pytest.raises(httpx.RemoteProtocolError):
        http.get(MEDIA)


def test_a_request_that_is_held_is_forgotten_with_all_else(cloud: Cloud) -> None:
    """A request that is held when the cloud is reset has no effect afterwards."""
    cloud.fault(Fault.delay(0.2, operation=INSERT))
    host, port = cloud.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as sock:
        sock.sendall(f"POST {UPLOAD} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx".encode())
        wait = threading.Event()
        while cloud.pending_faults:
            wait.wait(0.005)
        cloud.reset()
        cloud.store.create_bucket("bkt")
        assert sock.recv(1) == b""
    assert (len(cloud.effects), len(cloud.requests)) == (0, 0)


def test_stopping_ends_stalls_and_delays() -> None:
    """Stopping the cloud ends all stalls and delays."""
    with Cloud() as cloud:
        cloud.fault(Fault.stall(limit=600), Fault.delay(600))
        failures = list[Exception]()

        def get() -> None:
            try:
                httpx.get(f"{cloud.url}/storage/v1/b?project=p", timeout=60)
            except httpx.HTTPError as error:
                failures.append(error)

        threads = [threading.Thread(target=get) for _ in range(2)]
        for thread in threads:
            thread.start()
        wait = threading.Event()
        while cloud.pending_faults:
            wait.wait(0.005)
    for thread in threads:
        thread.join(20)
    assert len(failures) == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delayed_request_gets_its_response(cloud: Cloud, http: httpx.Client, when: str) -> None:
    """A delayed request gets its response."""
    cloud.fault(Fault.from_json({"action": "delay", "seconds": 0.01, "when": when}))
    assert http.post(UPLOAD, content=b"x").status_code == 200
    assert cloud.requests[0].fault == f"delay {when}"


def test_one_byte_of_a_corrupt_body_differs(cloud: Cloud, http: httpx.Client) -> None:
    """One byte of the body differs from what is stored; a position beyond the body changes nothing."""
    cloud.store.put("bkt", "o", b"hello")
    cloud.fault(Fault.corrupt(1), Fault.corrupt(99))
    assert http.get(MEDIA).content == b"h\x9allo"
    assert http.get(MEDIA).content == b"hello"


def test_all_conditions_of_a_fault_must_match(cloud: Cloud, http: httpx.Client) -> None:
    """Operation, method, path, regular expression and header must all match."""
    cloud.store.put("bkt", "o", b"x")
    cloud.fault(
        Fault.status(
            500,
            operation="storage.objects.get",
            method="get",
            path="alt=media",
            path_regex=r"/o/o\?",
            header=("X-Test", "ab"),
            times=None,
        )
    )
    assert http.get(MEDIA, headers={"x-test": "cabd"}).status_code == 500
    assert http.get(MEDIA).status_code == 200
    assert http.head(MEDIA, headers={"x-test": "ab"}).status_code == 200
    assert http.get("/storage/v1/b/bkt/o/o", headers={"x-test": "ab"}).status_code == 200
    assert http.get("/storage/v1/b/bkt", headers={"x-test": "ab"}).status_code == 200


def test_a_fault_hits_as_often_as_it_should(cloud: Cloud, http: httpx.Client) -> None:
    """`skip` spares requests, `times` limits the hits, `nth` hits one request, and the first match wins."""

    def statuses() -> str:
        return "".join(str(http.get("/storage/v1/b/bkt").status_code)[0] for _ in range(6))

    cloud.fault(Fault.status(503, skip=1, times=2))
    assert statuses() == "255222"
    cloud.fault(Fault.status(404, nth=3))
    assert statuses() == "224222"
    cloud.fault(Fault.status(400, nth=2), Fault.status(503, times=None))
    assert statuses() == "545555"
    assert cloud.pending_faults == 1
    cloud.clear_faults()
    assert statuses() == "222222"


def test_probability_follows_the_seed() -> None:
    """The same seed hits the same requests, at about the given probability."""

    def draw(seed: int) -> list[int]:
        with Cloud(seed=seed) as cloud, httpx.Client(base_url=cloud.url, verify=False) as http:
            cloud.fault(Fault.status(503, times=None, probability=0.5))
            return [http.get("/storage/v1/b?project=p").status_code for _ in range(60)]

    first, again, other = draw(1), draw(1), draw(2)
    assert first == again != other
    assert 15 < first.count(503) < 45


def test_faults_meet_unknown_paths_too(cloud: Cloud, http: httpx.Client) -> None:
    """A fault can hit a request that no operation serves, unless it is for an operation."""
    cloud.fault(Fault.status(503, operation="storage.buckets.get"), Fault.status(500, path="/v1/nowhere"))
    assert http.get("/v1/nowhere").status_code == 500
    assert http.get("/v1/nowhere").status_code == 404
    assert cloud.requests[0].operation is None


def test_exactly_once_can_be_proved(cloud: Cloud, http: httpx.Client) -> None:
    """A blind repeat after a lost response shows as two effects, a guarded one as one; tokens are only recorded."""
    cloud.fault(Fault.status(503, when="after", operation=INSERT, times=2))
    token = {"x-goog-gcs-idempotency-token": "one-and-the-same"}
    for _ in range(2):
        http.post(UPLOAD, content=b"x", headers=token)
    assert cloud.effects.count(INSERT, "bkt/o") == 2
    assert [effect.token for effect in cloud.effects] == ["one-and-the-same"] * 2
    assert [effect.request for effect in cloud.effects] == [1, 2]
    guarded = UPLOAD.replace("name=o", "name=p&ifGenerationMatch=0")
    assert [http.post(guarded, content=b"x").status_code for _ in range(2)] == [200, 412]
    assert cloud.effects.count(INSERT, "bkt/p") == 1


def test_credentials_that_expired(cloud: Cloud, http: httpx.Client) -> None:
    """One token can be refused and another accepted; the log shows that there was one, but not which."""
    cloud.fault(Fault.status(401, header=("authorization", "Bearer old"), times=None))
    tokens = ("Bearer old", "Bearer new", None)
    for token, status in zip(tokens, (401, 200, 200), strict=True):
        headers = {} if token is None else {"Authorization": token}
        assert http.get("/storage/v1/b/bkt", headers=headers).status_code == status
    assert [request.authorized for request in cloud.requests] == [True, True, False]
    assert not any("Bearer" in str(request) for request in cloud.requests)
