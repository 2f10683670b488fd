"""A google-cloud-storage client that `install` made safe, beside one as it comes."""

import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.cloud import storage
from google.cloud.storage import retry as stock
from google.cloud.storage import transfer_manager
from requests.adapters import HTTPAdapter

import forbear
from forbear.clients.google_storage import install
from forbear.services import cloud_storage, iam, redis, rfc9110
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google import ANONYMOUS

CHUNK = 262_144
QUICK = stock.DEFAULT_RETRY.with_delay(initial=0.001, maximum=0.001)
LOST = (Fault.reset(when="after"), Fault.status(503, when="after"), Fault.truncate(1))


@pytest.fixture
def safe(client: Any) -> Any:
    """The bucket of a client that was made safe."""
    return install(client).bucket("bkt")


@pytest.mark.parametrize("fault", LOST, ids=lambda fault: fault.name)
def test_an_upload_whose_response_is_lost(cloud: Cloud, client: Any, fault: Fault) -> None:
    """As it comes, the client makes a second generation; made safe it makes one, and says why it stopped."""
    cloud.fault(fault)
    client.bucket("bkt").blob("a").upload_from_string("hello", retry=QUICK)
    assert cloud.effects.count("storage.objects.insert") == 2
    cloud.fault(fault)
    with virtual_time() as time, pytest.raises(exceptions.RetryError) as caught:
        install(client).bucket("bkt").blob("b").upload_from_string("hello")
    assert (cloud.effects.count("storage.objects.insert"), time.slept) == (3, [])
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE
    assert isinstance(caught.value.cause, requests.RequestException | exceptions.ServiceUnavailable)


def test_a_condition_makes_it_safe(cloud: Cloud, safe: Any) -> None:
    """The upload is repeated under Google's default object, once for all of its loop, with one token."""
    cloud.fault(Fault.status(503, times=3))
    with virtual_time(seed=1) as time:
        safe.blob("a").upload_from_string("hello", if_generation_match=0)
    assert (len(time.slept), cloud.effects.count("storage.objects.insert")) == (3, 1)
    tokens = {request.headers.get("x-goog-gcs-idempotency-token") for request in cloud.requests if request.size}
    assert len(tokens) == 1


def test_a_condition_that_an_earlier_attempt_used_up(cloud: Cloud, safe: Any) -> None:
    """The 412 is raised unchanged."""
    cloud.fault(Fault.reset(when="after"))
    with virtual_time(), pytest.raises(exceptions.PreconditionFailed) as caught:
        safe.blob("a").upload_from_string("hello", if_generation_match=0)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done


def test_attempts_do_not_multiply(cloud: Cloud, client: Any) -> None:
    """Google's loop does not begin again after forbear gave up, for metadata, uploads and downloads."""
    bucket = install(client, cloud_storage.policy.with_attempts(3)).bucket("bkt")
    calls: list[Callable[[], object]] = [
        bucket.reload,
        lambda: bucket.blob("a").download_as_bytes(),
        lambda: bucket.blob("a").upload_from_string("hello", if_generation_match=0),
    ]
    for call in calls:
        before = len(cloud.requests)
        cloud.clear_faults()
        cloud.fault(Fault.status(503, times=None))
        with virtual_time(), pytest.raises(exceptions.RetryError, match="503") as caught:
            call()
        assert len(cloud.requests) - before == 3
        assert isinstance(caught.value.cause, exceptions.ServiceUnavailable)


@pytest.mark.parametrize("fault", [Fault.partial(CHUNK), Fault.status(503, operation="storage.objects.insert.send")])
def test_a_chunk_is_not_resent_without_asking(cloud: Cloud, safe: Any, fault: Fault) -> None:
    """Its session is asked, and only what it lacks is sent."""
    data = bytes(range(256)) * 5000
    cloud.fault(fault)
    with virtual_time() as time:
        safe.blob("a", chunk_size=2 * CHUNK).upload_from_file(io.BytesIO(data))
    assert time.slept
    assert cloud.requests.count("storage.objects.insert.query") == 1
    assert cloud.effects.count("storage.objects.insert") == 1
    assert safe.blob("a").download_as_bytes() == data


def test_a_download_that_breaks_goes_on(cloud: Cloud, safe: Any) -> None:
    """It asks for the rest; one that stays broken ends Google's loop."""
    data = bytes(range(256)) * 5000
    safe.blob("a").upload_from_string(data)
    cloud.fault(Fault.truncate(1000, times=2))
    with virtual_time() as time:
        out = io.BytesIO()
        safe.blob("a").download_to_file(out)
    assert (out.getvalue() == data, len(time.slept)) == (True, 2)
    cloud.fault(Fault.truncate(1000))
    cloud.fault(Fault.status(404, times=None))
    with virtual_time(), pytest.raises(exceptions.RetryError) as caught:
        safe.blob("a").download_as_bytes()
    assert forbear.report(caught.value) is not None


def test_metadata_calls(cloud: Cloud, safe: Any) -> None:
    """An unconditional patch of an object, which the client repeats as it comes, is sent once."""
    blob = safe.blob("a")
    blob.upload_from_string("hello")
    blob.content_language = "en"
    cloud.fault(Fault.reset(when="after"))
    with virtual_time() as time, pytest.raises(exceptions.RetryError):
        blob.patch()
    assert time.slept == []
    cloud.fault(Fault.status(503))
    blob.content_language = "de"
    with virtual_time() as time:
        blob.patch(if_metageneration_match=2)
    assert len(time.slept) == 1


def test_threads_of_the_transfer_manager(cloud: Cloud, client: Any) -> None:
    """Many uploads at once, some of which fail at first, all succeed with one effect each."""
    policy = cloud_storage.policy.with_backoff(forbear.Constant(0.001))  # threads know nothing of virtual time
    bucket = install(client, policy).bucket("bkt")
    cloud.fault(Fault.status(503, times=5))
    pairs = [(io.BytesIO(b"x" * number), bucket.blob(str(number))) for number in range(8)]
    kept = transfer_manager.upload_many(pairs, skip_if_exists=True, worker_type=transfer_manager.THREAD, max_workers=4)
    assert kept == [None] * 8
    assert cloud.effects.count("storage.objects.insert") == 8


def test_it_can_be_installed_again_and_off(cloud: Cloud, client: Any) -> None:
    """Another policy takes the place of the first; switched off, calls are sent once."""
    install(install(client), cloud_storage.policy.with_attempts(2))
    cloud.fault(Fault.status(503, times=2))
    with virtual_time() as time, pytest.raises(exceptions.RetryError):
        client.bucket("bkt").reload()
    assert len(time.slept) == 1
    cloud.fault(Fault.status(503))
    with forbear.disabled(), pytest.raises(exceptions.RetryError):
        client.bucket("bkt").reload()


def test_a_policy_of_ones_own_keeps_the_table(cloud: Cloud, client: Any) -> None:
    """On an emulator, too: the method alone would allow a second DELETE."""
    cloud.store.put("bkt", "there", b"abc")
    policy = forbear.retry(on=requests.RequestException, attempts=2)
    bucket = install(client, policy).bucket("bkt")
    cloud.fault(Fault.reset(when="after", operation="storage.objects.delete"))
    with virtual_time() as time:
        with pytest.raises(exceptions.RetryError) as caught:
            bucket.blob("there").delete()
        assert "it may be repeated only with ifGenerationMatch= or generation=" in caught.value.__notes__[0]
        cloud.fault(Fault.reset(when="before", operation="storage.objects.insert"))
        bucket.blob("new").upload_from_string(b"abc", if_generation_match=0)
    assert len(time.slept) == 1


@pytest.mark.parametrize("policy", [iam.policy, rfc9110.policy, redis.policy], ids=["iam", "rfc9110", "redis"])
def test_the_policy_of_another_service_is_refused(client: Any, policy: forbear.Policy) -> None:
    """Its table knows none of the operations, or takes them for others."""
    with pytest.raises(TypeError, match=r"`policy` must (not )?be .* take "):
        install(client, policy)


def test_what_cannot_be_made_safe_is_refused() -> None:
    """Something else than a client, a session of another library, adapters of its own."""
    with pytest.raises(TypeError, match="`client` must be a google"):
        install(object())  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="one of requests"):
        install(storage.Client(project="p", credentials=ANONYMOUS, _http=object()))

    class Other(HTTPAdapter):
        """An adapter for mutual TLS, say."""

    session = requests.Session()
    session.mount("https://", Other())
    with pytest.raises(TypeError, match="plain adapters"):
        install(storage.Client(project="p", credentials=ANONYMOUS, _http=session))


UPDATE = "storage.projects.hmacKeys.update"


def _work(client: Any) -> list[str]:
    """Make calls of which each has a stale object, and return what they come to, in words."""
    outcomes = []

    def do(what: str, call: Callable[[], object]) -> None:
        try:
            call()
        except exceptions.GoogleAPICallError as error:
            outcomes.append(f"{what}: {error.code}")
        else:
            outcomes.append(f"{what}: done")

    bucket = client.bucket("stale")
    do("create", lambda: client.create_bucket(bucket))
    blob = bucket.blob("a")
    for text in ("old", "new"):  # the second overwrites the first
        do("upload", partial(bucket.blob("a").upload_from_string, text))
    blob.metadata = {"a": "b"}
    do("patch", blob.patch)
    other = bucket.blob("a")
    other.reload()
    do("touch", blob.patch)
    other.metadata = {"c": "d"}
    do("patch a stale object", other.patch)
    do("update a stale object", other.update)
    stale = client.bucket("stale")
    stale.reload()
    bucket.labels = {"a": "b"}
    do("patch a bucket", bucket.patch)
    stale.labels = {"c": "d"}
    do("patch a stale bucket", stale.patch)
    do("update a stale bucket", stale.update)
    policy = bucket.get_iam_policy()
    policy.etag = None
    do("set a policy", lambda: bucket.set_iam_policy(policy))
    do("compose", lambda: bucket.blob("sum").compose([blob, blob]))
    do("copy", lambda: bucket.copy_blob(blob, bucket, "copy"))
    do("rename", lambda: bucket.rename_blob(bucket.blob("copy"), "renamed"))
    do("rewrite", lambda: bucket.blob("again").rewrite(blob))
    do("make public", bucket.blob("again").make_public)
    first, _ = client.create_hmac_key("a@p.iam.gserviceaccount.com", project_id="p")
    first.reload()
    second = client.get_hmac_key_metadata(first.access_id, project_id="p")
    for key in (second, first):
        key.state = "INACTIVE"
        do("update a key", key.update)
    do("update it without retries", lambda: first.update(retry=None))
    do("delete the key", second.delete)
    do("delete", lambda: bucket.delete_blob("again"))
    do("delete it twice", lambda: bucket.delete_blob("again"))
    return outcomes


def test_without_a_fault_nothing_changes(cloud: Cloud) -> None:
    """Every call asks for the same as with the plain client, and ends alike, however old the caller's objects are."""

    def sent(prepare: Callable[[Any], Any]) -> tuple[list[str], list[tuple[str, int | None]]]:
        cloud.reset()
        client = storage.Client(project="p", credentials=ANONYMOUS, client_options={"api_endpoint": cloud.url})
        outcomes = _work(prepare(client))
        client.close()
        writes = [request for request in cloud.requests if request.method != "GET"]  # the client reads in a thread, too
        return outcomes, [(request.method, request.status) for request in writes]

    assert sent(install) == sent(lambda client: client)


def test_the_update_of_a_key_is_sent_once(cloud: Cloud, client: Any) -> None:
    """The client does not send the etag, so a lost response leaves open whether a repeat would undo something."""
    key, _ = install(client).create_hmac_key("a@p.iam.gserviceaccount.com", project_id="p")
    key.state = "INACTIVE"
    cloud.fault(Fault.reset(when="after", operation=UPDATE))
    with virtual_time() as time, pytest.raises(exceptions.RetryError) as caught:
        key.update(retry=stock.DEFAULT_RETRY)
    report = forbear.report(caught.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE
    assert (cloud.effects.count(UPDATE), time.slept) == (1, [])


def test_the_sample_of_the_page(cloud: Cloud, client: Any) -> None:
    """`bucket.update(retry=DEFAULT_RETRY)` is sent once where Google's repeats it; the note has a cure that works."""
    bucket = install(client).bucket("bkt")
    bucket.reload()
    cloud.fault(Fault.status(503, operation="storage.buckets.update", times=2))
    with virtual_time(), pytest.raises(exceptions.RetryError) as caught:
        bucket.update(retry=stock.DEFAULT_RETRY)
    assert caught.value.__notes__[0].endswith(
        "storage.buckets.update may have been executed; it may be repeated only with ifMetagenerationMatch=; "
        "pass if_metageneration_match=bucket.metageneration [unsafe]"
    )
    with virtual_time():
        bucket.update(retry=stock.DEFAULT_RETRY, if_metageneration_match=bucket.metageneration)
    assert cloud.effects.count("storage.buckets.update") == 1
