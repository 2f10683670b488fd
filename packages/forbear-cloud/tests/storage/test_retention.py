"""Holds and retention: a protected object can be neither deleted nor overwritten by any operation."""

import httpx
import pytest

from forbear_cloud import Cloud
from forbear_cloud.http.messages import JsonObject

OBJECT = "/storage/v1/b/bkt/o/o"
UPLOAD = "/upload/storage/v1/b/bkt/o?uploadType=media&name=o"
COMPOSE: JsonObject = {"sourceObjects": [{"name": "other"}]}


class Clock:
    """A clock whose time changes only when a test sets it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(cloud: Cloud) -> Clock:
    """Return the clock of the cloud."""
    clock = Clock()
    cloud.store.now = clock
    return clock


def attempts(http: httpx.Client) -> list[tuple[str, int, str]]:
    """Try every way to destroy the object; return the response of each."""
    session = http.post("/upload/storage/v1/b/bkt/o?uploadType=resumable&name=o").headers["location"]
    multipart = http.post("/bkt/o?uploads").text.partition("<UploadId>")[2].partition("<")[0]
    etag = http.put(f"/bkt/o?uploadId={multipart}&partNumber=1", content=b"x").headers["etag"]
    part = f"<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>"
    complete = f"<CompleteMultipartUpload>{part}</CompleteMultipartUpload>"
    component = "<ComposeRequest><Component><Name>other</Name></Component></ComposeRequest>"
    responses = {
        "delete": http.delete(OBJECT),
        "delete xml": http.delete("/bkt/o"),
        "upload": http.post(UPLOAD, content=b"new"),
        "session": http.put(session, content=b"new"),
        "xml": http.put("/bkt/o", content=b"new"),
        "parts": http.post(f"/bkt/o?uploadId={multipart}", content=complete),
        "compose": http.post(f"{OBJECT}/compose", json=COMPOSE),
        "compose xml": http.put("/bkt/o?compose", content=component),
        "rewrite": http.post("/storage/v1/b/bkt/o/other/rewriteTo/b/bkt/o/o"),
        "copy": http.post("/storage/v1/b/bkt/o/other/copyTo/b/bkt/o/o"),
        "copy xml": http.put("/bkt/o", headers={"x-goog-copy-source": "/bkt/other"}),
        "move to": http.post("/storage/v1/b/bkt/o/other/moveTo/o/o"),
        "move away": http.post(f"{OBJECT}/moveTo/o/elsewhere"),
    }
    return [
        (
            name,
            response.status_code,
            "" if "xml" in name or name == "parts" else response.json()["error"]["errors"][0]["reason"],
        )
        for name, response in responses.items()
    ]


def check_protected(cloud: Cloud, http: httpx.Client, word: str) -> None:
    """Check that every attempt gets 403 and that nothing has changed."""
    before, generation = cloud.effects.count(), cloud.store.object("bkt", "o").generation
    for name, status, reason in attempts(http):
        assert (name, status, reason) == (name, 403, word if reason else "")
    assert cloud.effects.count() == before + 2  # the multipart upload and its part
    assert cloud.store.object("bkt", "o").generation == generation
    assert cloud.store.object("bkt", "other").data == b"other"
    assert cloud.store.bucket("bkt").live("elsewhere") is None


@pytest.mark.parametrize("hold", ["temporaryHold", "eventBasedHold"])
def test_a_hold_protects_an_object_until_it_is_removed(cloud: Cloud, http: httpx.Client, hold: str) -> None:
    """A hold protects an object until it is removed; its metadata can be changed, and its copies are not protected."""
    for name in ("o", "other"):
        cloud.store.put("bkt", name, name.encode())
    assert http.patch(OBJECT, json={hold: True}).json()[hold] is True
    check_protected(cloud, http, "objectUnderActiveHold")
    assert http.patch(OBJECT, json={"contentType": "a/b"}).status_code == 200
    assert http.post(f"{OBJECT}/rewriteTo/b/bkt/o/copy").status_code == 200
    assert http.delete("/storage/v1/b/bkt/o/copy").status_code == 204
    http.patch(OBJECT, json={hold: False})
    assert http.delete(OBJECT).status_code == 204


def test_a_retention_policy(cloud: Cloud, http: httpx.Client, clock: Clock) -> None:
    """A bucket's policy protects every object for a period after its creation."""
    for name in ("o", "other"):
        cloud.store.put("bkt", name, name.encode())
    policy = http.patch("/storage/v1/b/bkt", json={"retentionPolicy": {"retentionPeriod": "100"}}).json()
    assert policy["retentionPolicy"]["retentionPeriod"] == "100"
    assert "effectiveTime" in policy["retentionPolicy"]
    check_protected(cloud, http, "retentionPolicyNotMet")
    assert http.get(OBJECT).json()["retentionExpirationTime"] == "2027-01-15T08:01:40.000Z"
    clock.now += 101
    assert http.delete(OBJECT).status_code == 204
    assert http.patch("/storage/v1/b/bkt", json={"retentionPolicy": None}).status_code == 200
    assert http.put("/bkt/other", content=b"new").status_code == 200


def test_a_released_hold_starts_the_period(cloud: Cloud, http: httpx.Client, clock: Clock) -> None:
    """With an event-based hold, which can be the default of a bucket, the period begins at its release."""
    http.patch("/storage/v1/b/bkt", json={"retentionPolicy": {"retentionPeriod": 100}, "defaultEventBasedHold": True})
    assert http.post(UPLOAD, content=b"x").json()["eventBasedHold"] is True
    clock.now += 1000
    assert http.delete(OBJECT).status_code == 403
    http.patch(OBJECT, json={"eventBasedHold": False})
    assert http.delete(OBJECT).json()["error"]["errors"][0]["reason"] == "retentionPolicyNotMet"
    clock.now += 101
    assert http.delete(OBJECT).status_code == 204
    assert cloud.effects.count("storage.objects.delete") == 1


def test_a_locked_policy(http: httpx.Client) -> None:
    """A locked policy can be extended, but neither reduced nor removed."""
    http.patch("/storage/v1/b/bkt", json={"retentionPolicy": {"retentionPeriod": 100}})
    assert http.post("/storage/v1/b/bkt/lockRetentionPolicy?ifMetagenerationMatch=2").status_code == 200
    for change, status in (({"retentionPeriod": 99}, 403), (None, 403), ({"retentionPeriod": 200}, 200)):
        assert http.patch("/storage/v1/b/bkt", json={"retentionPolicy": change}).status_code == status
    assert http.put("/storage/v1/b/bkt", json={}).status_code == 403
    assert http.get("/storage/v1/b/bkt").json()["retentionPolicy"]["isLocked"] is True


@pytest.mark.parametrize("period", [0, -1, "x", True, 10**12])
def test_bad_periods(http: httpx.Client, period: object) -> None:
    """A period is from one second to 100 years."""
    assert http.patch("/storage/v1/b/bkt", json={"retentionPolicy": {"retentionPeriod": period}}).status_code == 400


def test_a_retained_version_cannot_be_deleted(cloud: Cloud, http: httpx.Client) -> None:
    """In a versioned bucket, a retained version can become noncurrent but not be deleted; a held one stays live."""
    versioned = {"versioning": {"enabled": True}, "retentionPolicy": {"retentionPeriod": 100}}
    assert http.patch("/storage/v1/b/bkt", json=versioned).status_code == 200
    generation = cloud.store.put("bkt", "o", b"x").generation
    assert http.put("/bkt/o", content=b"new").status_code == 200
    assert http.delete(f"{OBJECT}?generation={generation}").status_code == 403
    assert http.get(f"{OBJECT}?generation={generation}").status_code == 200
    http.patch(OBJECT, json={"temporaryHold": True})
    assert http.put("/bkt/o", content=b"newer").status_code == 403
    assert http.delete(OBJECT).json()["error"]["errors"][0]["reason"] == "objectUnderActiveHold"


def test_the_retention_of_one_object(http: httpx.Client, clock: Clock) -> None:
    """If a bucket allows it, an object has its own retention; only an override reduces it, unless it is locked."""
    early, late = ({"mode": "Unlocked", "retainUntilTime": f"2027-01-{day}T12:00:00Z"} for day in (20, 25))
    http.put("/bkt/o", content=b"x")
    assert http.patch(OBJECT, json={"retention": late}).status_code == 400
    http.delete("/bkt/o")
    http.delete("/storage/v1/b/bkt")
    made = http.post("/storage/v1/b?project=p&enableObjectRetention=true", json={"name": "bkt"}).json()
    assert made["objectRetention"] == {"mode": "Enabled"}
    http.put("/bkt/o", content=b"x")
    assert http.patch(OBJECT, json={"retention": {"mode": "x"}}).status_code == 400
    assert http.patch(OBJECT, json={"retention": late}).json()["retention"] == late
    assert http.delete(OBJECT).json()["error"]["errors"][0]["reason"] == "retentionPolicyNotMet"
    for change in (early, {}, None):
        assert http.patch(OBJECT, json={"retention": change}).status_code == 403
    assert http.patch(f"{OBJECT}?overrideUnlockedRetention=true", json={"retention": early}).status_code == 200
    locked = {**late, "mode": "Locked"}
    assert http.patch(OBJECT, json={"retention": locked}).status_code == 200
    for change in (early, late, None):
        url = f"{OBJECT}?overrideUnlockedRetention=true"
        assert http.patch(url, json={"retention": change}).status_code == 403
    clock.now += 11 * 86_400
    assert http.delete(OBJECT).status_code == 204


def test_conditions_come_first(cloud: Cloud, http: httpx.Client) -> None:
    """A failed precondition gets 412, also for a protected object."""
    cloud.store.put("bkt", "o", b"x", {"temporaryHold": True})
    assert http.delete(f"{OBJECT}?ifGenerationMatch=1").status_code == 412
    assert http.post(f"{UPLOAD}&ifGenerationMatch=0", content=b"x").status_code == 412
