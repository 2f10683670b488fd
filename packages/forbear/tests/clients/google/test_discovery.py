"""`install` on services of google-api-python-client, built from its own documents: executions on a local server."""

import io
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from copy import copy
from http.client import HTTPException, IncompleteRead
from select import select
from typing import Any

import httplib2  # type: ignore[import-untyped]
import pytest
from google.auth.exceptions import TransportError
from googleapiclient import discovery, discovery_cache
from googleapiclient.errors import HttpError
from googleapiclient.http import MediaIoBaseUpload

import forbear
from forbear.clients.discovery import DiscoveryPort, RetriedHttp, install
from forbear.core.verdict import Kind
from forbear.http.request import Request
from forbear.services.discovery import list_methods
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.clients.google.rest_server import Fate, Server
from forbear_testkit.clients.wire import Answer, Wire, reply

Call = Callable[[Any], Any]
APIS = {"drive": "v3", "gmail": "v1", "calendar": "v3"}
BUSY, LOST, CUT = Fate(503, executed=True), Fate(breaks="reset", executed=True), Fate(breaks="body", executed=True)


def build(api: str, url: str) -> Any:
    """Return a service that calls a server on loopback."""
    return discovery.build(
        api, APIS.get(api, "v1"), credentials=ANONYMOUS, client_options={"api_endpoint": url}, static_discovery=True
    )


@pytest.fixture
def services(rest: Server) -> Iterator[dict[str, Any]]:
    """The three services, with retries."""
    made = {api: forbear.install(build(api, f"http://{rest.host}/")) for api in APIS}
    yield made
    for service in made.values():
        service.close()


EVENT, MEDIA = {"summary": "s"}, {"id": "file-id", "name": "n"}
MESSAGE: dict[str, Any] = {"userId": "me", "body": {"raw": "eA=="}}
CALLS: dict[str, tuple[str, Call, bool]] = {
    "drive.files.list": ("drive", lambda drive: drive.files().list(), True),
    "drive.files.get": ("drive", lambda drive: drive.files().get(fileId="f"), True),
    "a long read by POST": ("drive", lambda drive: drive.files().list(q="x" * 3000), True),
    "drive.files.create": ("drive", lambda drive: drive.files().create(body={"name": "n"}), False),
    "drive.files.create, empty id": ("drive", lambda drive: drive.files().create(body={"id": "", "name": "n"}), False),
    "drive.files.create, id": ("drive", lambda drive: drive.files().create(body=MEDIA), True),
    "drive.files.copy, id": ("drive", lambda drive: drive.files().copy(fileId="f", body=MEDIA), False),
    "drive.files.update": ("drive", lambda drive: drive.files().update(fileId="f", body={"name": "n"}), False),
    "drive.files.delete": ("drive", lambda drive: drive.files().delete(fileId="f"), True),
    "drive.files.emptyTrash": ("drive", lambda drive: drive.files().emptyTrash(), False),
    "drive.permissions.create": (
        "drive",
        lambda drive: drive.permissions().create(fileId="f", sendNotificationEmail=True, body={}),
        False,
    ),
    "gmail.users.messages.send": ("gmail", lambda gmail: gmail.users().messages().send(**MESSAGE), False),
    "gmail.users.messages.get": ("gmail", lambda gmail: gmail.users().messages().get(userId="me", id="m"), True),
    "gmail.users.labels.update": (
        "gmail",
        lambda gmail: gmail.users().labels().update(userId="me", id="l", body={"name": "n"}),
        True,
    ),
    "calendar.events.insert": (
        "calendar",
        lambda calendar: calendar.events().insert(calendarId="c", body=EVENT),
        False,
    ),
    "calendar.events.insert, id": (
        "calendar",
        lambda calendar: calendar.events().insert(calendarId="c", body=EVENT | {"id": "abcde"}),
        True,
    ),
    "calendar.events.insert, id and mail": (
        "calendar",
        lambda calendar: calendar.events().insert(calendarId="c", sendUpdates="all", body=EVENT | {"id": "abcde"}),
        False,
    ),
    "calendar.events.update": (
        "calendar",
        lambda calendar: calendar.events().update(calendarId="c", eventId="e", body=EVENT),
        True,
    ),
    "calendar.events.update, mail": (
        "calendar",
        lambda calendar: calendar.events().update(calendarId="c", eventId="e", sendUpdates="all", body=EVENT),
        False,
    ),
    "calendar.events.delete, mail": (
        "calendar",
        lambda calendar: calendar.events().delete(calendarId="c", eventId="e", sendUpdates="all"),
        False,
    ),
    "calendar.events.quickAdd": (
        "calendar",
        lambda calendar: calendar.events().quickAdd(calendarId="c", text="t"),
        False,
    ),
}


@pytest.mark.parametrize("fate", [BUSY, LOST, CUT], ids=["503", "lost", "cut off"])
@pytest.mark.parametrize("name", CALLS)
def test_what_was_executed(rest: Server, services: dict[str, Any], name: str, fate: Fate) -> None:
    """It is executed again only if its method, its parameters and its body make that harmless."""
    api, call, safe = CALLS[name]
    rest.fail(fate)
    request = call(services[api])
    with virtual_time(seed=1):
        if safe:
            request.execute()
        else:
            with pytest.raises((HttpError, OSError, HTTPException)) as caught:
                request.execute()
            report = forbear.report(caught.value)
            assert report is not None
            assert report.reason is forbear.events.Reason.UNSAFE
            assert report.operation == name.partition(",")[0]
    assert len(rest.executed) == (2 if safe else 1)


DESCRIBED = [
    ("youtube", "v3", "youtube.playlists.delete", "/youtube/v3/playlists?id=p", True),
    ("youtubeAnalytics", "v2", "youtubeAnalytics.groups.delete", "/v2/groups?id=g", False),  # its id is not required
    ("people", "v1", "people.people.deleteContact", "/v1/people/c1:deleteContact", True),
    ("calendar", "v3", "calendar.acl.update", "/calendar/v3/calendars/c/acl/r", False),
    ("calendar", "v3", "calendar.acl.update", "/calendar/v3/calendars/c/acl/r?sendNotifications=true", False),
    ("calendar", "v3", "calendar.acl.update", "/calendar/v3/calendars/c/acl/r?sendNotifications=false", True),
    ("calendar", "v3", "calendar.acl.delete", "/calendar/v3/calendars/c/acl/r", True),
    ("apigee", "v1", "apigee.organizations.developers.apps.update", "/v1/organizations/o/developers/d/apps/a", False),
    ("tagmanager", "v2", "tagmanager.accounts.containers.environments.update", "/tagmanager/v2/accounts/a", True),
    ("healthcare", "v1", "healthcare.projects.locations.datasets.fhirStores.fhir.update", "/v1/projects/p/x/y", False),
    ("dlp", "v2", "dlp.projects.locations.tableDataProfiles.delete", "/v2/projects/p/tableDataProfiles/t", False),
    ("compute", "v1", "compute.httpHealthChecks.delete", "/compute/v1/projects/p/global/httpHealthChecks/h", True),
    ("firestore", "v1", "firestore.projects.databases.userCreds.delete", "/v1/projects/p/userCreds/u", True),
    ("documentai", "v1", "documentai.projects.locations.schemas.delete", "/v1/projects/p/schemas/s?force=true", False),
    ("eventarc", "v1", "eventarc.projects.locations.messageBuses.delete", "/v1/projects/p/messageBuses/b", False),
    ("eventarc", "v1", "eventarc.projects.locations.messageBuses.delete", "/v1/p/messageBuses/b?etag=e", True),
    ("firestore", "v1", "firestore.projects.databases.userCreds.delete", "/v1/projects/-/userCreds/u", False),
    ("logging", "v2", "logging.projects.logs.delete", "/v2/projects/p/logs/l", False),
    ("tasks", "v1", "tasks.tasks.update", "/tasks/v1/lists/l/tasks/t", True),
]


@pytest.mark.parametrize(("api", "version", "method", "target", "safe"), DESCRIBED)
def test_what_a_description_says(api: str, version: str, method: str, target: str, safe: bool) -> None:
    """A DELETE of one thing is repeated, also where no RPC is known for it, and nothing that makes something new."""
    document = json.loads(discovery_cache.get_static_doc(api, version) or "")
    judge = next(each for each in list_methods(document) if each.method_id == method)
    host = document["rootUrl"].split("/")[2]
    assert judge.classify(Request(judge.described["httpMethod"], host, target)).repeatable == safe


@pytest.mark.parametrize("name", ["gmail.users.messages.send", "drive.files.list"])
def test_a_refused_connection(name: str) -> None:
    """Nothing was sent, so any request is repeated."""
    api, call, _ = CALLS[name]
    with socket.socket() as reserved, virtual_time(seed=1) as time:
        reserved.bind(("127.0.0.1", 0))
        service = install(build(api, f"http://127.0.0.1:{reserved.getsockname()[1]}/"), attempts=3)
        with service, pytest.raises(ConnectionRefusedError):
            call(service).execute()
    assert len(time.slept) == 2


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httplib2.ServerNotFoundError("no such host"), Kind.NOT_EXECUTED),
        (TransportError("no token"), Kind.NOT_EXECUTED),  # type: ignore[no-untyped-call]
        (ssl.SSLCertVerificationError("untrusted"), Kind.PERMANENT),
        (TimeoutError("timed out"), Kind.TRANSIENT),
        (IncompleteRead(b""), Kind.TRANSIENT),
        (httplib2.RedirectLimit("too many", {}, b""), Kind.PERMANENT),
        (ValueError("wrong"), Kind.PERMANENT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.value,
)
def test_errors(services: dict[str, Any], error: Exception, kind: Kind) -> None:
    """Some come before anything was sent, some may come after it was executed, and some no other attempt changes."""

    class Failing:
        def request(self, *_: Any, **__: Any) -> None:
            raise error

    http = CALLS["drive.files.list"][1](services["drive"]).http
    port = DiscoveryPort(RetriedHttp(Failing(), http.options, ""), "https://a.example/", "GET", None, {}, {})
    with pytest.raises(type(error)):
        port.first()
    assert port.verdict(error).kind is kind


def test_a_redirect_to_nowhere(rest: Server, services: dict[str, Any]) -> None:
    """A message that was sent before its redirect failed is not taken for one that was never sent."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{reserved.getsockname()[1]}/"
        rest.fail(Fate(303, executed=True, headers=(("Location", nobody),)))
        with virtual_time(), pytest.raises(ConnectionRefusedError):
            CALLS["gmail.users.messages.send"][1](services["gmail"]).execute()
    assert len(rest.executed) == 1


@pytest.mark.parametrize("installed", [False, True])
def test_httplib2_sends_nothing_twice_in_secret(*, installed: bool) -> None:
    """By itself it sends a message again whose response was lost, without a word."""
    sent = reply(200, b"{}", "Content-Type: application/json")
    with Wire(Answer(end="close"), sent) as wire, virtual_time():
        with build("gmail", f"{wire.url}/") as gmail:
            if installed:
                install(gmail)
                with pytest.raises(ConnectionError):
                    CALLS["gmail.users.messages.send"][1](gmail).execute()
            else:
                CALLS["gmail.users.messages.send"][1](gmail).execute()
        assert len(wire.seen) == (1 if installed else 2)


def test_a_connection_that_the_server_has_closed() -> None:
    """A new one is opened before the request is sent, so nothing is in doubt."""
    sent = reply(200, b"{}", "Content-Type: application/json", end="close")
    with Wire(sent, sent) as wire, install(build("gmail", f"{wire.url}/")) as gmail:
        CALLS["gmail.users.messages.send"][1](gmail).execute()
        for connection in gmail._http.http.connections.values():
            select([connection.sock], [], [], 5)  # until its end has arrived
        CALLS["gmail.users.messages.send"][1](gmail).execute()
        assert (len(wire.seen), wire.connections) == (2, 2)


def test_a_connection_of_another_client() -> None:
    """A connection that httplib2 itself has opened would send a message again in secret; another one is opened."""
    sent = reply(200, b"{}", "Content-Type: application/json")
    http = httplib2.Http()
    with Wire(sent, Answer(end="close"), sent) as wire, install(build("gmail", f"{wire.url}/")) as gmail:
        http.request(f"{wire.url}/other")
        with pytest.raises(ConnectionError):
            CALLS["gmail.users.messages.send"][1](gmail).execute(http=http)
        assert [seen.method for seen in wire.seen] == ["GET", "POST"]
    http.close()


@pytest.mark.parametrize("method", ["execute", "next_chunk"])
def test_num_retries_are_refused(services: dict[str, Any], rest: Server, method: str) -> None:
    """Two layers of retries would multiply."""
    request = services["drive"].files().create(body={}, media_body=media())
    with pytest.raises(ValueError, match=r"`num_retries` must be 0: forbear retries.*got 3"):
        getattr(request, method)(num_retries=3)
    assert rest.requests == []


@pytest.mark.parametrize("reason", ["rateLimitExceeded", "userRateLimitExceeded", "insufficientPermissions"])
def test_a_403_that_asks_for_fewer_requests(reason: str) -> None:
    """It is as transient as a 429."""
    error = json.dumps({"error": {"code": 403, "errors": [{"reason": reason}]}}).encode()
    found = reply(200, b"{}", "Content-Type: application/json")
    refused = reply(403, error, "Content-Type: application/json")
    with Wire(refused, found) as wire, install(build("drive", f"{wire.url}/")) as drive, virtual_time():
        request = drive.files().list()
        if reason == "insufficientPermissions":
            with pytest.raises(HttpError):
                request.execute()
        else:
            request.execute()
        assert len(wire.seen) == (1 if reason == "insufficientPermissions" else 2)


def test_a_batch_is_sent_once(rest: Server, services: dict[str, Any]) -> None:
    """A part of it may have been executed."""
    drive = services["drive"]
    drive._rootDesc["batchPath"] = "batch/drive/v3"
    batch = drive.new_batch_http_request()
    batch._batch_uri = f"http://{rest.host}/batch/drive/v3"
    batch.add(drive.files().get(fileId="a"))
    batch.add(drive.files().get(fileId="b"))
    rest.fail(BUSY)
    with virtual_time(), pytest.raises(HttpError):
        batch.execute()
    assert rest.executed == [("POST", "/batch/drive/v3")]


def test_a_name_that_begins_like_a_batch(rest: Server, services: dict[str, Any]) -> None:
    """A read of it is no batch."""
    rest.fail(BUSY)
    with virtual_time():
        services["calendar"].events().get(calendarId="c", eventId="batch1").execute()
    assert len(rest.executed) == 2


def media(size: int = 600_000, chunk: int = 262_144) -> Any:
    """Return a file that is uploaded in parts."""
    return MediaIoBaseUpload(io.BytesIO(bytes(size)), "text/plain", chunksize=chunk, resumable=True)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_upload_in_parts(cloud: Cloud, when: Any) -> None:
    """A part whose response is lost is not sent again: the session says what it has."""
    upload: Any = {"bucket": "bkt", "name": "o", "ifGenerationMatch": "0"}
    with install(build("storage", f"{cloud.url}/storage/v1/")) as storage, virtual_time():
        request = storage.objects().insert(**upload, media_body=media())
        request.uri = request.uri.replace("https://", "http://")
        cloud.fault(Fault.reset(when=when, operation="storage.objects.insert"))
        assert request.execute()["size"] == "600000"
    assert cloud.store.object("bkt", "o").generation
    assert cloud.effects.count("storage.objects.insert") == 1


def test_an_upload_of_an_api_without_a_table() -> None:
    """The start of a session is repeated; a part that was lost is followed by the question what the session has."""
    with Wire() as wire, install(build("drive", f"{wire.url}/")) as drive, virtual_time():
        place = f"Location: {wire.url}/upload?upload_id=1"
        half = reply(308, b"", "Range: bytes=0-99999")
        done = reply(200, b"{}", "Content-Type: application/json")
        wire.answers[:] = [reply(503), reply(200, b"", place), Answer(end="reset"), half, done]
        request = drive.files().create(body={"name": "n"}, media_body=media(150_000))
        request.uri = request.uri.replace("https://", "http://")
        request.execute()
        *starts, lost, question, rest = wire.seen
    assert [each.method for each in wire.seen] == ["POST", "POST", "PUT", "PUT", "PUT"]
    assert len({each.target for each in starts}) == 1
    found = [each.header("content-range") for each in (lost, question, rest)]
    assert found == ["bytes 0-149999/150000", "bytes */150000", "bytes 100000-149999/150000"]
    assert len(rest.body) == 50_000


def test_a_table_counts_first(cloud: Cloud) -> None:
    """Cloud Storage knows its operations, also at an emulator."""
    with install(build("storage", f"{cloud.url}/storage/v1/")) as storage, virtual_time():
        cloud.fault(Fault.reset(when="after", operation="storage.buckets.patch"))
        with pytest.raises(ConnectionError) as caught:
            storage.buckets().patch(bucket="bkt", body={}).execute()
        assert "only with ifMetagenerationMatch=" in caught.value.__notes__[0]
    assert cloud.effects.count("storage.buckets.patch") == 1


def test_another_http(rest: Server, services: dict[str, Any]) -> None:
    """A request that gets its own `http` is retried, too."""
    other = httplib2.Http()
    rest.fail(BUSY)
    request = CALLS["drive.files.list"][1](services["drive"])
    assert isinstance(request.http, RetriedHttp)
    with virtual_time(seed=1):
        request.execute(http=other)
    assert len(rest.executed) == 2
    other.close()
    assert copy(request.http).inner is request.http.inner


def test_vouched(rest: Server) -> None:
    """The user's word counts, for the URL that is called in production."""
    safe = "POST https://www.googleapis.com/drive/v3/files?*"
    with install(build("drive", f"http://{rest.host}/drive/v3/"), safe=safe) as drive, virtual_time(seed=1):
        rest.fail(BUSY)
        CALLS["drive.files.create"][1](drive).execute()
    assert len(rest.executed) == 2


def test_retries_that_are_off(rest: Server, services: dict[str, Any]) -> None:
    """They leave one attempt."""
    rest.fail(BUSY)
    with forbear.disabled(), pytest.raises(HttpError):
        CALLS["drive.files.list"][1](services["drive"]).execute()
    assert len(rest.executed) == 1


def test_what_is_refused(services: dict[str, Any]) -> None:
    """A second installation, other objects, and a timeout for attempts."""
    with pytest.raises(ValueError, match="has forbear's retries already"):
        install(services["drive"])
    with pytest.raises(TypeError, match=r"must be a service of googleapiclient\.discovery"):
        install(object())
    with (
        build("drive", "http://127.0.0.1:1/") as drive,
        pytest.raises(ValueError, match="httplib2 has a timeout of its own"),
    ):
        install(drive, attempt_timeout=3)
