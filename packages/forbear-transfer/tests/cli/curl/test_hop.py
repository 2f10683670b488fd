"""`forbear curl`: redirects, proxies and Google credentials. Each request is judged on its own, and secrets stay."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from forbear_cloud import Cloud, Fault
from forbear_testkit.cli.running import Invoke
from forbear_testkit.cli.tls_front import tls_front, tunnel
from forbear_testkit.clients.h2_server import h2_server
from forbear_testkit.clients.wire import Wire, reply

OK = reply(200, b"done")
BUSY = reply(503)
SECRETS = ("-H", "Authorization: Bearer SECRET", "-b", "sid=SECRET", "-H", "X-Goog-Api-Key: SECRET", "-H", "X-Own: 1")
HIDDEN = ("authorization", "cookie", "x-goog-api-key")


@pytest.mark.parametrize(
    ("status", "method", "followed", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (302, "PUT", "PUT", b"body"),
        (307, "POST", "POST", b"body"),
        (308, "PATCH", "PATCH", b"body"),
    ],
)
def test_methods_of_redirects(invoke: Invoke, status: int, method: str, followed: str, body: bytes) -> None:
    """A 303 leads to a GET, and a POST answered 301 or 302 too; otherwise method and body stay."""
    with Wire(reply(status, b"", "Location: next?a=b"), OK) as server:
        done = invoke("curl", "-L", "-X", method, "-d", "body", f"{server.url}/dir/first")
    assert (done.exit_code, done.stdout) == (0, "done")
    second = server.seen[1]
    assert (second.method, second.target, second.body) == (followed, "/dir/next?a=b", body)
    assert (second.header("content-type") is None) is (body == b"")


def test_without_location_a_redirect_is_the_response(invoke: Invoke) -> None:
    """As in curl, a redirect is not followed unless -L is used."""
    with Wire(reply(302, b"see there", "Location: /next")) as server:
        done = invoke("curl", "-f", "-w", "|%{num_redirects}", server.url)
    assert (done.exit_code, done.stdout, len(server.seen)) == (0, "see there|0", 1)


def test_the_heads_of_all_hops_are_shown(invoke: Invoke) -> None:
    """With -i and -L the output has the headers of every response, and the body of the last."""
    with Wire(reply(302, b"lost", "Location: /next"), OK) as server:
        done = invoke("curl", "-L", "-i", "-w", "|%{num_redirects} %{url_effective}", server.url)
    assert done.stdout.count("HTTP/1.1 302") == done.stdout.count("HTTP/1.1 200") == 1
    assert done.stdout.endswith(f"\r\n\r\ndone|1 {server.url}/next") or done.stdout.endswith(
        f"\n\ndone|1 {server.url}/next"
    )


def test_credentials_do_not_cross_origins(invoke: Invoke) -> None:
    """They stay for the same origin, and are dropped for another host or port, with all that sounds like a secret."""
    with Wire(OK) as other, Wire() as server:
        server.answers = [reply(307, b"", "Location: /same"), reply(307, b"", f"Location: {other.url}/x")]
        done = invoke("curl", "-L", *SECRETS, "-X", "POST", "-d", "body", f"{server.url}/a")
    assert (done.exit_code, done.stdout) == (0, "done")
    assert [[seen.header(name) is not None for name in HIDDEN] for seen in server.seen] == [[True] * 3] * 2
    (last,) = other.seen
    assert [last.header(name) for name in (*HIDDEN, "x-own")] == [None, None, None, "1"]
    assert (last.body, last.header("host")) == (b"body", other.url.partition("://")[2])


def test_an_idempotency_key_stays_at_its_origin(invoke: Invoke) -> None:
    """A redirect on the same origin gets a key, too; one to another origin gets none, and is not repeated."""
    with Wire(BUSY) as other, Wire() as server:
        server.answers = [reply(307, b"", "Location: /same"), BUSY, reply(307, b"", f"Location: {other.url}/x")]
        key = ("--idempotency-header", "X-Key", "--constant", "0")
        invoke("curl", "-L", *key, "-X", "POST", "-d", "body", f"{server.url}/a")
    assert [len(seen.header("x-key") or "") for seen in server.seen] == [36] * 3
    assert [seen.header("x-key") for seen in other.seen] == [None]


def test_every_hop_is_judged_on_its_own(invoke: Invoke) -> None:
    """A vouch for the first request says nothing of the host to which it redirects."""
    with Wire(BUSY, OK) as other, Wire() as server:
        server.answers = [BUSY, reply(307, b"", f"Location: {other.url}/a")]
        line = ("-L", "-d", "x", f"{server.url}/a", "--safe", f"POST {server.url}/a", "--constant", "0")
        done = invoke("curl", *line, "--report", "json")
    first, second = json.loads(done.stderr)["requests"]
    assert (first["attempts"], first["vouched"], first["status"]) == (2, True, 307)
    assert (second["attempts"], second["vouched"], second["status"]) == (1, False, 503)
    assert len(other.seen) == 1


def test_a_service_named_for_an_emulator_is_that_of_every_hop(invoke: Invoke, cloud: Cloud) -> None:
    """`--service` judges by a service's tables, whatever the host is called."""
    cloud.fault(Fault.status(503))
    line = ("-X", "DELETE", f"{cloud.url}/storage/v1/b/bkt?ifMetagenerationMatch=1", "--constant", "0")
    done = invoke("curl", *line, "--service", "cloud_storage", "--report", "json")
    (request,) = json.loads(done.stderr)["requests"]
    assert (request["operation"], request["attempts"], request["status"]) == ("storage.buckets.delete", 2, 204)


@pytest.mark.parametrize(
    ("options", "environment", "proxied"),
    [
        (("-x", "PROXY"), {}, True),
        ((), {"http_proxy": "PROXY"}, True),
        ((), {"ALL_PROXY": "PROXY"}, True),
        (("-x", ""), {"http_proxy": "PROXY"}, False),
        (("-x", "PROXY", "--noproxy", "127.0.0.1"), {}, False),
        ((), {"http_proxy": "PROXY", "NO_PROXY": "127.0.0.1"}, False),
        ((), {"https_proxy": "PROXY"}, False),
    ],
)
def test_proxies_are_those_of_curl(
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    environment: dict[str, str],
    proxied: bool,
) -> None:
    """Proxies are those of -x and of the environment, as in curl."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with Wire(OK) as proxy, Wire(OK) as server:
        for name, value in environment.items():
            monkeypatch.setenv(name, value.replace("PROXY", proxy.url))
        words = [word.replace("PROXY", proxy.url) for word in options]
        done = invoke("curl", *words, "-U", "me:pw", f"{server.url}/a")
    assert done.exit_code == 0
    assert [seen.target for seen in proxy.seen] == ([f"{server.url}/a"] if proxied else [])
    assert [seen.header("proxy-authorization") for seen in proxy.seen] == (["Basic bWU6cHc="] if proxied else [])
    assert len(server.seen) == (not proxied)


def test_http2(invoke: Invoke) -> None:
    """A stream that the server refused is sent again, for it was not executed, though it is a POST."""
    with h2_server("refuse", "respond") as (url, script):
        done = invoke("curl", "--http2-prior-knowledge", "-d", "body", url, "--constant", "0")
    assert (done.exit_code, script.streams, script.bodies) == (0, 2, [b"body"])


@pytest.mark.parametrize("option", ["--resolve", "--connect-to"])
def test_resolve_and_connect_to_choose_the_address(invoke: Invoke, option: str) -> None:
    """The request goes to the address of the option, for the host of the URL."""
    with Wire(OK) as server:
        port = server.url.rpartition(":")[2]
        value = f"api.example.com:{port}:127.0.0.1" if option == "--resolve" else f"api.example.com::127.0.0.1:{port}"
        host = f"api.example.com:{port}" if option == "--resolve" else "api.example.com"
        done = invoke("curl", option, value, f"http://{host}/a")
    assert done.exit_code == 0
    assert server.seen[0].header("host") == host


@pytest.fixture(scope="module")
def google(running_cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The options by which requests for Google's hosts reach the embedded cloud."""
    with tls_front(running_cloud.url, tmp_path_factory.mktemp("tls") / "server.pem") as options:
        yield options


def test_a_tunnel_through_a_proxy(invoke: Invoke, cloud: Cloud, google: tuple[str, ...]) -> None:
    """Over https a proxy sees the host alone, and a URL that only the CONNECT request could carry is an error."""
    with tunnel(int(google[-1].rpartition(":")[2])) as (proxy, lines):
        line = ("-x", proxy, "--cacert", google[1], "--max-time", "20")
        done = invoke("curl", *line, "https://storage.googleapis.com/storage/v1/b/bkt?fields=name")
        odd = invoke("curl", *line, "https://storage.googleapis.com/bkt/a`b")
    assert (done.exit_code, json.loads(done.stdout)) == (0, {"name": "bkt"})
    assert lines == ["CONNECT storage.googleapis.com:443 HTTP/1.1"]
    assert odd.exit_code == 2
    assert "percent-encode its special characters" in odd.stderr


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A key file of a service account, whose token server grants "SECRETTOKEN"."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    granted = json.dumps({"access_token": "SECRETTOKEN", "expires_in": 3600, "token_type": "Bearer"}).encode()
    with Wire(reply(200, granted, "Content-Type: application/json")) as server:
        file = tmp_path_factory.mktemp("key") / "key.json"
        account = {"client_email": "me@p.iam.gserviceaccount.com", "private_key_id": "1", "project_id": "p"}
        account |= {"type": "service_account", "token_uri": f"{server.url}/token", "private_key": key}
        file.write_text(json.dumps(account))
        yield file


@pytest.mark.parametrize("by", ["file", "default"])
def test_google_credentials(
    invoke: Invoke,
    cloud: Cloud,
    google: tuple[str, ...],
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    by: str,
) -> None:
    """A token of the key file, or of the application default credentials, goes to Google's hosts over TLS."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file))
    options = ("--google-credentials",) if by == "default" else ("--credentials", str(key_file))
    done = invoke("curl", *options, "-v", "https://storage.googleapis.com/storage/v1/b/bkt", *google)
    assert (done.exit_code, json.loads(done.stdout)["name"]) == (0, "bkt")
    assert [seen.authorized for seen in cloud.requests] == [True]
    assert "SECRETTOKEN" not in done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("http://storage.googleapis.com/b",), "only to https URLs of *.googleapis.com, got http://storage."),
        (("https://api.example.com/b",), "only to https URLs of *.googleapis.com, got https://api.example.com"),
        (("https://googleapis.com.example.com/b",), "only to https URLs of *.googleapis.com"),
        (("https://evilgoogleapis.com/b",), "only to https URLs of *.googleapis.com"),
        (("-k", "https://storage.googleapis.com/b"), "-k does not go with Google credentials"),
        (("-u", "a:b", "https://storage.googleapis.com/b"), "do not go with an Authorization header"),
    ],
)
def test_google_credentials_go_nowhere_else(invoke: Invoke, words: tuple[str, ...], text: str) -> None:
    """No credentials are even read for a request that could show a token to others."""
    done = invoke("curl", "--credentials", "no/such/file", *words)
    assert done.exit_code == 2
    assert text in done.stderr


def test_missing_google_credentials(invoke: Invoke, tmp_path: Path) -> None:
    """A key file that does not exist is bad input; for one that is no key, the error says how to log in."""
    done = invoke("curl", "--credentials", str(tmp_path / "none"), "https://storage.googleapis.com/b")
    assert (done.exit_code, "none: it does not exist\nhint: check the name" in done.stderr) == (2, True)
    (tmp_path / "none").write_text("{}")
    done = invoke("curl", "--credentials", str(tmp_path / "none"), "https://storage.googleapis.com/b")
    assert done.exit_code == 1
    assert "gcloud auth application-default login" in done.stderr
