"""Credentials: tokens of real google-auth credentials from a token server on loopback, renewed when they expire."""

import asyncio
import json
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from traceback import walk_tb
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import forbear
from forbear.services import cloud_storage
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.wire import Answer, Wire, reply
from forbear_testkit.transfer.uploads import CHUNK, SEND, TARGET, file_of, steps, storing, versions
from forbear_testkit.transfer.wire_server import OK, serving
from forbear_transfer.errors import HttpError, NoCredentials, TransferError, WrongResponse
from forbear_transfer.objects import Url
from forbear_transfer.storage.client import Storage
from forbear_transfer.storage.credentials import ANONYMOUS, Credentials, GoogleTokens, Tokens, tokens
from forbear_transfer.uploads.upload import upload

pytestmark = pytest.mark.anyio

EXPIRED = Fault.status(401, header=("authorization", "Bearer first"), times=None)


@pytest.fixture(scope="module")
def key() -> str:
    """A private key."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def granted(token: str, seconds: int = 3600) -> Answer:
    """Return the answer of a token server."""
    text = json.dumps({"access_token": token, "expires_in": seconds, "token_type": "Bearer"})
    return reply(200, text.encode(), "Content-Type: application/json")


@pytest.fixture
def server() -> Iterator[Wire]:
    """A token server; it grants "first", and from then on "second"."""
    with Wire(granted("first"), granted("second")) as wire:
        yield wire


@pytest.fixture
def account(server: Wire, key: str, tmp_path: Path) -> Credentials:
    """A service account of that server."""
    return Credentials(file=str(written(tmp_path, server, "service_account", key)))


def written(folder: Path, server: Wire, kind: str, key: str = "") -> Path:
    """A file of credentials."""
    path = folder / f"{kind}.json"
    common = {"type": kind, "token_uri": f"{server.url}/token"}
    if kind == "service_account":
        email = "me@p.iam.gserviceaccount.com"
        own = {"client_email": email, "private_key": key, "private_key_id": "1", "project_id": "p"}
    else:
        own = {"client_id": "i", "client_secret": "s", "refresh_token": "r", "quota_project_id": "payer"}
    path.write_text(json.dumps({**common, **own}))
    return path


async def test_nobody_is_anonymous(cloud: Cloud) -> None:
    """No header is sent, and none is to be had after a 401."""
    cloud.fault(Fault.status(401))
    async with storing(cloud, credentials=ANONYMOUS) as storage:
        with pytest.raises(HttpError) as caught:
            await storage.stat(TARGET)
        await storage.stat(TARGET)
    assert "gcloud auth application-default login" in str(caught.value.hint)
    assert [each.authorized for each in cloud.requests] == [False, False]


async def test_a_service_account_signs_for_its_token(
    cloud: Cloud, server: Wire, account: Credentials, tmp_path: Path
) -> None:
    """One token serves all requests of a session."""
    async with storing(cloud, credentials=account) as storage:
        await upload(storage, file_of(tmp_path, 3 * CHUNK), TARGET, chunk_size=CHUNK)
        await asyncio.gather(*(storage.stat(TARGET) for _ in range(5)))
    assert all(each.authorized for each in cloud.requests)
    assert len(server.seen) == 1
    assert b"jwt-bearer" in server.seen[0].body


async def test_a_login_of_gcloud_gives_a_token_and_a_project(server: Wire, tmp_path: Path) -> None:
    """The login that gcloud keeps names the project that pays."""
    wanted = Credentials(file=str(written(tmp_path, server, "authorized_user")))
    source = await tokens(wanted, cloud_storage.policy)
    assert isinstance(source, GoogleTokens)
    source._credentials = source._credentials.with_token_uri(f"{server.url}/token")
    assert await source.headers() == {"authorization": "Bearer first", "x-goog-user-project": "payer"}


async def test_the_default_is_the_applications(
    cloud: Cloud, server: Wire, account: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As google-auth finds it."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account.file))
    async with storing(cloud, credentials=Credentials()) as storage:
        await storage.stat(TARGET)
    assert [each.authorized for each in cloud.requests] == [True]


async def test_an_account_can_be_impersonated(account: Credentials) -> None:
    """With the source's own credentials for the request to do so."""
    act = Credentials(file=account.file, impersonate="other@p.iam.gserviceaccount.com")
    source = await tokens(act, cloud_storage.policy)
    assert isinstance(source, GoogleTokens)
    assert source._credentials.service_account_email == "other@p.iam.gserviceaccount.com"


async def test_expired_in_mid_transfer(cloud: Cloud, server: Wire, account: Credentials, tmp_path: Path) -> None:
    """A chunk that is answered with 401 goes again with a new token, and nobody waits."""
    cloud.fault(Fault.status(401, header=("authorization", "Bearer first"), operation=SEND, skip=1, times=None))
    async with storing(cloud, credentials=account) as storage:
        await upload(storage, file_of(tmp_path, 4 * CHUNK), TARGET, chunk_size=CHUNK)
    assert steps(cloud) == ["start", *["send"] * 5]
    assert len(server.seen) == 2
    assert versions(cloud) == 1


async def test_one_refresh_serves_all(cloud: Cloud, server: Wire, account: Credentials, tmp_path: Path) -> None:
    """However many tasks are answered with 401 at the same time."""
    small, large = file_of(tmp_path, 10, "small"), file_of(tmp_path, 3 * CHUNK, "large")
    async with storing(cloud, credentials=account) as storage:
        await storage.stat(TARGET)
        cloud.fault(EXPIRED)
        await asyncio.gather(
            *(upload(storage, small, Url("bkt", f"small{number}")) for number in range(8)),
            *(upload(storage, large, Url("bkt", f"large{number}"), chunk_size=CHUNK) for number in range(3)),
        )
    assert len(server.seen) == 2
    assert cloud.effects.total == 11


async def test_a_token_that_is_never_taken_is_an_error(cloud: Cloud, server: Wire, account: Credentials) -> None:
    """One new token, and then it is the server's last word."""
    cloud.fault(Fault.status(401, times=None))
    async with storing(cloud, credentials=account) as storage:
        with pytest.raises(HttpError) as caught:
            await storage.stat(TARGET)
    assert caught.value.status == 401
    assert len(server.seen) == 2


async def test_a_token_server_that_is_not_there_for_a_moment(cloud: Cloud, key: str, tmp_path: Path) -> None:
    """The refresh is tried again, by the policy."""
    with Wire(Answer(end="reset"), Answer(end="close"), granted("first")) as server:
        wanted = Credentials(file=str(written(tmp_path, server, "service_account", key)))
        async with storing(cloud, credentials=wanted) as storage:
            await storage.stat(TARGET)
        assert len(server.seen) == 3


async def test_a_token_server_that_stays_away(cloud: Cloud, key: str, tmp_path: Path) -> None:
    """Is named, with what was tried."""
    with Wire(Answer(end="close")) as server:
        wanted = Credentials(file=str(written(tmp_path, server, "service_account", key)))
        async with storing(cloud, credentials=wanted, policy=cloud_storage.policy.with_attempts(3)) as storage:
            with pytest.raises(NoCredentials, match="no token can be obtained") as caught:
                await storage.stat(TARGET)
            with pytest.raises(NoCredentials):
                await upload(storage, file_of(tmp_path, 10), TARGET)
        assert len(server.seen) == 6
    tried = forbear.report(caught.value)
    assert tried is not None
    assert len(tried.attempts) == 3


async def test_a_login_that_is_over_has_a_cure(cloud: Cloud, key: str, tmp_path: Path) -> None:
    """It is not tried again, and the state of an upload stays for the next login."""
    over = reply(
        400, b'{"error": "invalid_grant", "error_description": "Bad Request"}', "Content-Type: application/json"
    )
    path = file_of(tmp_path, 3 * CHUNK)
    with Wire(granted("first"), over) as server:
        wanted = Credentials(file=str(written(tmp_path, server, "service_account", key)))
        cloud.fault(Fault.status(401, header=("authorization", "Bearer first"), operation=SEND, skip=1, times=None))
        async with storing(cloud, credentials=wanted) as storage:
            with pytest.raises(NoCredentials, match="invalid_grant") as caught:
                await upload(storage, path, TARGET, chunk_size=CHUNK)
        assert len(server.seen) == 2
    assert "gcloud auth application-default login" in str(caught.value.hint)
    assert steps(cloud) == ["start", "send", "send"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "was not found"),
        ("{", "not a valid json"),
        ("{}", "does not have a valid type"),
        ('{"type": "service_account"}', "cannot use the credentials"),
        ('{"type": "service_account", "client_email": "a", "token_uri": "b", "private_key": "c"}', "cannot use"),
    ],
)
async def test_files_that_are_no_credentials(cloud: Cloud, tmp_path: Path, text: str | None, said: str) -> None:
    """They are named, and what to do."""
    path = tmp_path / "key.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(NoCredentials, match=said) as caught:
        async with Storage(endpoint=cloud.url, credentials=Credentials(file=str(path))):
            pass
    assert str(path) in str(caught.value)
    assert caught.value.hint is not None


def no_virtual_machine(*_: object, **__: object) -> bool:
    """Stand for google-auth's question to the metadata server."""
    return False


async def test_a_device_holds_no_credentials(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the named file nor the one of the environment is read without an end."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/dev/zero")
    for credentials in (Credentials(file="/dev/zero"), Credentials()):
        with pytest.raises(NoCredentials, match="/dev/zero is no file of credentials: it is a device"):
            async with Storage(endpoint=cloud.url, credentials=credentials):
                pass


async def test_no_credentials_at_all(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cure is to log in."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr("google.auth.compute_engine._metadata.ping", no_virtual_machine)
    with pytest.raises(NoCredentials, match="no credentials were found") as caught:
        async with Storage(endpoint=cloud.url, credentials=Credentials()):
            pass
    assert "application-default login" in str(caught.value.hint)


@pytest.mark.parametrize(
    "endpoint", ["http://gcs.example:4443", "http://10.0.0.7", "gcs:4443", "http://localhost.evil.org"]
)
def test_no_token_goes_over_plain_http(endpoint: str) -> None:
    """Anybody on the way could read it; emulators get none unless asked."""
    with pytest.raises(ValueError, match="`credentials` must be anonymous"):
        Storage(endpoint=endpoint, credentials=Credentials())
    assert Storage(endpoint=endpoint).endpoint.startswith("http://")


@pytest.mark.parametrize(
    "endpoint", ["https://gcs.example", "http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1"]
)
def test_where_a_token_may_go(endpoint: str) -> None:
    """To where nobody else can read it."""
    assert Storage(endpoint=endpoint, credentials=Credentials()).endpoint == endpoint


OURS = ("forbear.", "forbear_transfer.")


def variables(error: BaseException | None) -> str:
    """The variables of our frames in the traceback of an error and of all that led to it, by their repr."""
    seen = list[str]()
    while error is not None:
        frames = [
            frame
            for frame, _ in walk_tb(error.__traceback__)
            if frame.f_globals["__name__"].startswith(("forbear.", "forbear_transfer."))
        ]
        seen += [f"{name} = {value!r}" for frame in frames for name, value in frame.f_locals.items()]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(seen)


async def test_tracebacks_with_variables_show_no_token(account: Credentials, tmp_path: Path) -> None:
    """Nor the URL of an upload session, a header of the user or the password of a proxy, in errors of any step."""
    session = "/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=s3cr3t-session"
    large = file_of(tmp_path, 2 * CHUNK)
    lost = Answer(b"", "reset")
    for answers in ([lost], [reply(200, b"", f"Location: {session}"), lost]):
        with Wire(*answers) as wire:
            headers, policy = {"X-Key": "s3cr3t-header"}, cloud_storage.policy.with_attempts(1)
            async with storing(wire.url, credentials=account, headers=headers, policy=policy) as storage:
                with pytest.raises(TransferError) as caught:
                    await upload(storage, large, TARGET, chunk_size=CHUNK)
            assert wire.seen[-1].header("x-key") == "s3cr3t-header"
            token = wire.seen[0].header("authorization")
            assert token in ("Bearer first", "Bearer second")
        shown = variables(caught.value)
        assert "authorised = " in shown
        assert token not in shown
        assert "s3cr3t" not in shown


async def test_the_password_of_a_proxy_is_in_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback shows no password if the proxy refuses the connection or has a wrong address."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for proxy in ("http://me:s3cr3t@127.0.0.1:1", "ftp://me:s3cr3t@127.0.0.1:1"):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        with pytest.raises((TransferError, ValueError)) as caught:
            async with Storage(endpoint="http://storage.test", policy=cloud_storage.policy.with_attempts(1)) as storage:
                await storage.stat(Url("bkt", "a"))
        assert "s3cr3t" not in variables(caught.value)


async def test_a_session_elsewhere_is_not_shown_the_token(cloud: Cloud, account: Credentials, tmp_path: Path) -> None:
    """Nor sent any data: it is refused."""
    place = "/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=1"
    with Wire(reply(403)) as elsewhere:
        with Wire(reply(200, b"", f"Location: {elsewhere.url}{place}")) as wire:
            async with storing(wire.url, credentials=account) as storage:
                with pytest.raises(WrongResponse, match="does not belong"):
                    await upload(storage, file_of(tmp_path, 2 * CHUNK), TARGET, chunk_size=CHUNK)
            assert wire.seen[0].header("authorization") == "Bearer first"
        assert elsewhere.seen == []


async def test_a_token_server_that_never_ends_is_given_up(key: str, tmp_path: Path) -> None:
    """Not even a token of theirs is waited for longer than the policy allows."""
    drops = Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{", "stall")
    with Wire(drops) as wire:
        wanted = Credentials(file=str(written(tmp_path, wire, "service_account", key)))
        source = await tokens(wanted, cloud_storage.policy)
        assert isinstance(source, GoogleTokens)
        impatient = cloud_storage.policy.with_attempts(1).with_attempt_timeout(0.2)
        with pytest.raises(NoCredentials, match=r"did not respond within 0\.2 s"):
            await GoogleTokens(source._credentials, impatient).headers()


async def test_a_token_server_that_redirects_is_not_followed(key: str, tmp_path: Path) -> None:
    """Who answers elsewhere never sees what is signed."""
    with Wire(granted("stolen")) as elsewhere, Wire(reply(307, b"", f"Location: {elsewhere.url}/token")) as wire:
        wanted = Credentials(file=str(written(tmp_path, wire, "service_account", key)))
        source = await tokens(wanted, cloud_storage.policy.with_attempts(1))
        with pytest.raises(NoCredentials):
            await source.headers()
        assert elsewhere.seen == []


def test_what_contradicts_itself_is_refused() -> None:
    """Nobody is anonymous and somebody."""
    with pytest.raises(ValueError, match="`anonymous` credentials"):
        Credentials(file="x", anonymous=True)


def test_a_description_travels() -> None:
    """To other processes, which find the same there."""
    wanted: Any = Credentials(file="x", impersonate="y")
    assert pickle.loads(pickle.dumps(wanted)) == wanted


@pytest.mark.parametrize(
    "error", [NoCredentials("none are left"), asyncio.CancelledError()], ids=["error", "cancelled"]
)
async def test_a_renewal_that_fails_gives_the_connection_back(error: BaseException) -> None:
    """The response that the credentials have expired is closed, though all of it has not come."""

    class Failing(Tokens):
        async def renew(self, rejected: Mapping[str, str]) -> bool:
            raise error

    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 9\r\n\r\nx"
    with serving(lambda n, head, connection: [refusal] if n == 1 else [OK]) as server:
        async with Storage(endpoint=server.url, connections=1) as storage:
            storage._tokens = Failing()
            with pytest.raises(type(error)):
                async with await storage.stream("GET", storage.url("/x"), {}):
                    pass
            async with asyncio.timeout(10), await storage.stream("GET", storage.url("/x"), {}) as response:
                assert response.status == 200
