"""The retry objects for google-cloud-storage: what they repeat beside what Google's own repeat."""

import gc
import io
import pickle
import socket
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import requests
from google.api_core import exceptions
from google.api_core import retry as api_retry
from google.cloud import storage
from google.cloud.storage import retry as stock

import forbear
from forbear.clients import google_storage as ours
from forbear.clients.google_storage.calls import CURES
from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.clients.google import ANONYMOUS
from forbear_testkit.plugin import collect_leftovers

CHUNK = 262_144
LOST = (Fault.reset(when="after", times=1), Fault.status(503, when="after", times=1), Fault.truncate(1, times=1))
QUICK = stock.DEFAULT_RETRY.with_delay(initial=0.001, maximum=0.001)


def upload(bucket: Any, retry: Any, **conditions: Any) -> None:
    """Upload the object "a"."""
    bucket.blob("a").upload_from_string(b"hello", retry=retry, **conditions)


@pytest.mark.parametrize("fault", LOST, ids=lambda fault: fault.name)
def test_an_upload_whose_response_is_lost(cloud: Cloud, bucket: Any, fault: Fault) -> None:
    """Google's object repeats it and makes a second generation; ours lets the error out, and says why."""
    cloud.fault(fault)
    upload(bucket, QUICK)
    assert cloud.effects.count("storage.objects.insert") == 2
    cloud.fault(fault)
    with virtual_time(seed=1) as time, pytest.raises((requests.RequestException, exceptions.ServiceUnavailable)) as e:
        upload(bucket, ours.DEFAULT_RETRY)
    assert (cloud.effects.count("storage.objects.insert"), time.slept) == (3, [])
    report = forbear.report(e.value)
    assert report is not None
    assert report.reason is forbear.events.Reason.UNSAFE


def test_an_upload_with_its_condition_is_repeated(cloud: Cloud, bucket: Any) -> None:
    """The 412 after a lost response is raised unchanged, and the report says that it may be done."""
    cloud.fault(Fault.status(503, times=2))
    with virtual_time(seed=1) as time:
        upload(bucket, ours.DEFAULT_RETRY_IF_GENERATION_SPECIFIED, if_generation_match=0)
        assert len(time.slept) == 2
        bucket.blob("a").delete()
        cloud.fault(Fault.reset(when="after", times=1))
        with pytest.raises(exceptions.PreconditionFailed) as caught:
            upload(bucket, ours.DEFAULT_RETRY, if_generation_match=0)
    assert cloud.effects.count("storage.objects.insert") == 2
    report = forbear.report(caught.value)
    assert report is not None
    assert report.maybe_done


def test_a_condition_that_is_absent_means_no_retry(cloud: Cloud, bucket: Any) -> None:
    """A conditional policy sends an unconditional upload once, for uploads too, where Google asks for its own class."""
    cloud.fault(Fault.status(503, times=1))
    with virtual_time(), pytest.raises(exceptions.ServiceUnavailable):
        upload(bucket, ours.DEFAULT_RETRY_IF_GENERATION_SPECIFIED)
    assert cloud.effects.count("storage.objects.insert") == 0
    assert isinstance(ours.DEFAULT_RETRY_IF_GENERATION_SPECIFIED, stock.ConditionalRetryPolicy)


def test_a_chunk_is_not_resent_without_asking(cloud: Cloud, bucket: Any) -> None:
    """Google's object sends all of it again and never asks; ours asks, and sends the rest."""

    def send(retry: Any) -> None:
        cloud.fault(Fault.partial(CHUNK, times=1))
        blob = bucket.blob("a", chunk_size=2 * CHUNK)
        blob.upload_from_file(io.BytesIO(b"x" * 3 * CHUNK), retry=retry)

    send(QUICK)
    before = cloud.requests.count("storage.objects.insert.send")
    assert (before, cloud.requests.count("storage.objects.insert.query")) == (3, 0)
    with virtual_time() as time:
        send(ours.DEFAULT_RETRY)
    assert cloud.requests.count("storage.objects.insert.send") == before + 3
    assert cloud.requests.count("storage.objects.insert.query") == len(time.slept) == 1


def test_the_examples_of_the_documents(cloud: Cloud, client: Any) -> None:
    """They run when only their import is changed."""
    from forbear.clients.google_storage import DEFAULT_RETRY

    bucket = client.bucket("bkt")
    upload(bucket, None)
    blob = bucket.blob("a")
    blob.reload(retry=None)
    bucket.update(retry=DEFAULT_RETRY)
    modified_retry = DEFAULT_RETRY.with_deadline(20)
    assert [each.name for each in bucket.list_blobs(retry=modified_retry)] == ["a"]
    assert modified_retry.timeout == 20
    modified_retry = DEFAULT_RETRY.with_delay(initial=1.5, multiplier=1.2, maximum=45.0).with_deadline(500.0)
    blob.reload(retry=modified_retry)
    custom = ours.ConditionalRetryPolicy(modified_retry, ours.is_generation_specified, ["query_params"])
    blob.delete(retry=custom, if_generation_match=blob.generation)


def test_retry_none_sends_once(cloud: Cloud, bucket: Any) -> None:
    """So it is with Google's own."""
    cloud.fault(Fault.status(503, times=1))
    with virtual_time() as time, pytest.raises(exceptions.ServiceUnavailable):
        bucket.reload(retry=None)
    assert time.slept == []


CALLS: dict[str, tuple[Callable[[Any, Any], object], bool]] = {
    "reload": (lambda bucket, retry: bucket.reload(retry=retry), True),
    "list": (lambda bucket, retry: list(bucket.list_blobs(retry=retry)), True),
    "update": (lambda bucket, retry: bucket.update(retry=retry), False),
    "update under its condition": (lambda bucket, retry: bucket.update(retry=retry, if_metageneration_match=1), True),
    "delete": (lambda bucket, retry: bucket.delete(retry=retry), True),
    "create": (lambda bucket, retry: bucket.client.create_bucket("new", retry=retry), True),
    "save an ACL": (lambda bucket, retry: bucket.acl.save(bucket.acl, retry=retry), False),
}


@pytest.mark.parametrize("name", CALLS)
def test_metadata_calls(cloud: Cloud, bucket: Any, name: str) -> None:
    """They are judged by method, path, query and body: what the table forbids to repeat is sent once."""
    call, repeated = CALLS[name]
    bucket.acl.reload()
    cloud.fault(Fault.status(503, times=1))
    with virtual_time(seed=1) as time:
        if repeated:
            call(bucket, ours.DEFAULT_RETRY)
        else:
            with pytest.raises(exceptions.ServiceUnavailable) as caught:
                call(bucket, ours.DEFAULT_RETRY)
            assert "may have been executed" in caught.value.__notes__[0]
    assert len(time.slept) == repeated


def test_an_etag_in_the_body(cloud: Cloud, bucket: Any) -> None:
    """The etag policy looks into the body, also where a call has none."""
    policy = bucket.get_iam_policy()
    cloud.fault(Fault.status(503, times=1))
    with virtual_time() as time:
        bucket.set_iam_policy(policy, retry=ours.DEFAULT_RETRY_IF_ETAG_IN_JSON)
        assert len(time.slept) == 1
        policy.etag = None
        cloud.fault(Fault.status(503, times=1))
        with pytest.raises(exceptions.ServiceUnavailable):
            bucket.set_iam_policy(policy, retry=ours.DEFAULT_RETRY_IF_ETAG_IN_JSON)
        cloud.fault(Fault.status(503, times=1))
        with pytest.raises(exceptions.ServiceUnavailable):
            bucket.reload(retry=ours.DEFAULT_RETRY_IF_ETAG_IN_JSON)  # with Google's own, a KeyError


@pytest.mark.parametrize("fault", [Fault.truncate(100, times=2), *LOST[:2]], ids=lambda fault: fault.name)
def test_downloads_go_on(cloud: Cloud, bucket: Any, fault: Fault) -> None:
    """A download is a read: a broken one is continued by the client under our object."""
    bucket.blob("a").upload_from_string(b"x" * 1000)
    cloud.fault(fault)
    with virtual_time() as time:
        assert bucket.blob("a").download_as_bytes(retry=ours.DEFAULT_RETRY) == b"x" * 1000
    assert time.slept


def test_a_read_whose_response_breaks_is_repeated(cloud: Cloud, bucket: Any) -> None:
    """Its error carries no request, but the arguments of the call say what it was."""
    cloud.fault(Fault.truncate(3, times=1))
    with virtual_time() as time:
        bucket.reload(retry=ours.DEFAULT_RETRY)
    assert len(time.slept) == 1


def test_the_schedule_is_the_documented_one(cloud: Cloud, bucket: Any) -> None:
    """From 1 s, doubled, at most 60 s, 120 s in all, full jitter: as Google's own and as the profile of its name."""
    mine, google = ours.DEFAULT_RETRY, stock.DEFAULT_RETRY
    for name in ("_initial", "_maximum", "_multiplier", "_timeout", "_deadline", "_on_error"):
        assert getattr(mine, name) == getattr(google, name)
    assert mine._policy.backoff == cloud_storage.python_client.backoff
    assert mine._policy.limits == cloud_storage.python_client.limits
    cloud.fault(Fault.status(503, times=None))
    with virtual_time(seed=3) as time, pytest.raises(exceptions.ServiceUnavailable) as caught:
        bucket.reload(retry=mine)
    for waited, most in zip(time.slept, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60], strict=False):
        assert waited <= most
    assert 60 < sum(time.slept) <= 120
    report = forbear.report(caught.value)
    assert report is not None
    assert report.operation == "storage.buckets.get"
    assert report.reason is forbear.events.Reason.TIMEOUT


def test_retry_after_is_obeyed(cloud: Cloud, bucket: Any) -> None:
    """Google's own does not read it."""
    cloud.fault(Fault.status(429, retry_after=30, times=1))
    with virtual_time(seed=1) as time:
        bucket.reload(retry=ours.DEFAULT_RETRY)
    assert 30 <= time.slept[0] <= 34


def test_an_unsafe_operation_that_was_not_sent_is_repeated() -> None:
    """If no connection is made, even an operation that must not happen twice is tried again."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port: int = closed.getsockname()[1]
        options = {"api_endpoint": f"http://127.0.0.1:{port}"}
        client = storage.Client(project="p", credentials=ANONYMOUS, client_options=options)
        with virtual_time(seed=1) as time, pytest.raises(requests.ConnectionError):
            upload(client.bucket("bkt"), ours.DEFAULT_RETRY.with_timeout(10))
        client.close()
    assert len(time.slept) > 2


def test_with_predicate_and_on_error(cloud: Cloud, bucket: Any) -> None:
    """The caller's predicate decides which errors are worth another try, and `on_error` gets those."""
    told: list[Exception] = []
    teapots = ours.Retry(on_error=told.append).with_predicate(lambda error: getattr(error, "code", None) == 418)
    with virtual_time():
        cloud.fault(Fault.status(418, times=1))
        bucket.reload(retry=teapots)
        cloud.fault(Fault.status(503, times=1))
        with pytest.raises(exceptions.ServiceUnavailable):
            bucket.reload(retry=teapots)
    assert len(told) == 1
    told.clear()
    with virtual_time():
        cloud.fault(Fault.status(503, times=1))
        ours.DEFAULT_RETRY(bucket.reload, told.append)
        bucket.reload(retry=ours.Retry(on_error=told.append))
    assert len(told) == 1


@pytest.mark.parametrize("part", ["predicate", "on_error"])
def test_a_function_that_raises(cloud: Cloud, bucket: Any, part: str) -> None:
    """The client's own error is raised; no outer policy repeats the write, but it may repeat a read."""

    def fail(error: Exception) -> bool:
        raise KeyError(part)

    retry = ours.Retry(on_error=fail) if part == "on_error" else ours.DEFAULT_RETRY.with_predicate(fail)
    outer = forbear.retry(on=Exception, attempts=3, backoff=forbear.Constant(0))
    for call, times in ((bucket.update, 1), (bucket.reload, 3)):
        cloud.clear_faults()
        cloud.fault(Fault.status(503, times=9))
        before = len(cloud.requests)
        with virtual_time(), pytest.raises(exceptions.ServiceUnavailable):
            outer.call(call, retry=retry)
        assert len(cloud.requests) - before == times


def test_the_caller_may_know_better(cloud: Cloud, bucket: Any) -> None:
    """`with_repeatable` overrules the table, and survives the other `with_…` methods."""
    cloud.fault(Fault.status(503, times=1))
    with virtual_time() as time:
        bucket.update(retry=ours.DEFAULT_RETRY.with_repeatable(True).with_timeout(60))
    assert len(time.slept) == 1


def test_copies_and_pickles() -> None:
    """They are Google's classes for who asks, derive from each other and travel to the workers of transfers."""
    assert isinstance(ours.DEFAULT_RETRY, api_retry.Retry)
    conditional = ours.DEFAULT_RETRY_IF_GENERATION_SPECIFIED.with_deadline(5).with_delay(maximum=7)
    conditional = conditional.with_predicate(stock._should_retry).with_timeout(9)
    for one in (conditional, pickle.loads(pickle.dumps(conditional))):
        assert isinstance(one, ours.ConditionalRetryPolicy)
        assert (one.retry_policy.timeout, one.retry_policy._maximum) == (9, 7)
        assert one.retry_policy._predicate is stock._should_retry
    assert pickle.loads(pickle.dumps(ours.DEFAULT_RETRY))._policy == ours.DEFAULT_RETRY._policy


def test_nothing_is_left_for_the_garbage_collector(cloud: Cloud, bucket: Any) -> None:
    """An error that was given up dies with its last reference, by either way."""
    watched: list[weakref.ref[Exception]] = []

    def give_up(call: Callable[[], object]) -> None:
        cloud.fault(Fault.status(503, operation="storage.buckets.patch"))
        try:
            call()
        except exceptions.GoogleAPIError as error:
            watched.append(weakref.ref(error))

    collect_leftovers()
    gc.disable()
    try:
        give_up(lambda: bucket.patch(retry=ours.DEFAULT_RETRY))
        ours.install(bucket.client)
        give_up(lambda: bucket.patch(retry=None))
        assert [reference() for reference in watched] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("name", "library", "needs", "extra"),
    [
        ("google_storage", "google.cloud.storage", "google-cloud-storage", "google"),
        ("google", "google.api_core", "google-api-core", "google"),
        ("grpc", "grpc", "grpcio", "grpc"),
    ],
)
def test_a_missing_library_is_said_with_its_cure(name: str, library: str, needs: str, extra: str) -> None:
    """Importing an adapter without its library names the extra to install; forbear itself does without."""
    script = f"import sys; sys.modules['{library}'] = None; import forbear; import forbear.clients.{name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    text = f'ImportError: forbear.clients.{name} needs {needs}; install it with: pip install "forbear[{extra}]"'
    assert done.stderr.rstrip().endswith(text)


def test_wrong_limits_and_asyncio_clients_are_refused() -> None:
    """Limits are checked, and a call of the asyncio client is not silently left alone."""
    with pytest.raises(ValueError, match="`timeout` must be positive"):
        ours.DEFAULT_RETRY.with_timeout(0)

    with pytest.raises(TypeError, match="`predciate` is no parameter of Retry"):
        ours.Retry(predciate=None)
    assert ours.Retry(deadline=7).timeout == 7

    async def call() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="returned an awaitable"):
        ours.DEFAULT_RETRY(call)().close()


@pytest.mark.parametrize(
    ("operation", "owner", "method", "arguments", "cure"),
    [
        ("buckets.update", "bucket", "update", (), "if_metageneration_match=bucket.metageneration"),
        ("buckets.patch", "bucket", "patch", (), "if_metageneration_match=bucket.metageneration"),
        ("objects.insert", "blob", "upload_from_string", ("x",), "if_generation_match=0 for a new object"),
        ("objects.delete", "bucket", "delete_blob", ("a",), "if_generation_match=blob.generation"),
        ("objects.patch", "blob", "patch", (), "if_metageneration_match=blob.metageneration"),
    ],
)
def test_the_note_has_a_cure_in_words_of_the_client(
    cloud: Cloud, bucket: Any, operation: str, owner: str, method: str, arguments: tuple[str, ...], cure: str
) -> None:
    """The argument to pass, and how to say that a repeat does no harm."""
    cloud.fault(Fault.status(503, operation=f"storage.{operation}"))
    send = getattr(bucket if owner == "bucket" else bucket.blob("a"), method)
    with virtual_time(seed=1), pytest.raises(exceptions.ServiceUnavailable) as caught:
        send(*arguments, retry=ours.DEFAULT_RETRY)
    report = forbear.report(caught.value)
    assert report is not None
    assert f"; pass {cure}" in report.note
    assert report.note.endswith("or retry=DEFAULT_RETRY.with_repeatable(True) if a repeat does no harm [unsafe]")


def test_every_conditional_operation_has_its_cure() -> None:
    """All of the JSON API for which a method of the client can send the condition."""
    without = {"storage.folders", "storage.managedFolders", "storage.projects.hmacKeys"}
    conditional = {entry.id for entry in cloud_storage.RECOMMENDED.tables()["cloud_storage.json"] if entry.conditions}
    assert {name for name in conditional if name.rpartition(".")[0] not in without} == CURES.keys()
