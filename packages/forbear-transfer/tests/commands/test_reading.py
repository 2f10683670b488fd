"""cat: the right bytes, each once, of one version, whatever happens to the connections."""

import gzip
import io
from random import Random

import pytest

from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault, random_faults
from forbear_transfer import ChecksumMismatch, HttpError, Settings, SourceChanged, TransferError, cat

GET = "storage.objects.get"
DATA = Random(1).randbytes(300_000)  # the same in each process of the tests


@pytest.fixture
def filled(cloud: Cloud) -> Cloud:
    """A bucket with two objects and a folder."""
    cloud.store.put("bkt", "data", DATA)
    cloud.store.put("bkt", "dog", b"a dog")
    cloud.store.put("bkt", "x/y", b"deep")
    cloud.store.put("bkt", "empty", b"")
    return cloud


def read(cloud: Cloud, *addresses: str, byte_range: str | None = None) -> bytes:
    """Return what `cat` writes, in virtual time."""
    stream = io.BytesIO()
    with virtual_time(seed=3):
        cat(addresses, stream, byte_range=byte_range, settings=Settings(endpoint=cloud.url))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (["gs://bkt/data"], DATA),
        (["gs://bkt/dog", "gs://bkt/x/*", "gs://bkt/empty"], b"a dogdeep"),
        (["gs://bkt/d*"], DATA + b"a dog"),
        (["gs://bkt/dog", "gs://bkt/dog"], b"a doga dog"),
        (["gs://bkt/x**"], b"deep"),
    ],
)
def test_whole_objects(addresses: list[str], expected: bytes, filled: Cloud) -> None:
    """One after the other, in the order of the addresses."""
    assert read(filled, *addresses) == expected


@pytest.mark.parametrize(
    ("byte_range", "expected"),
    [
        ("0-0", DATA[:1]),
        ("100-199", DATA[100:200]),
        ("299990-", DATA[-10:]),
        ("299990-999999", DATA[-10:]),
        ("-10", DATA[-10:]),
        ("-999999", DATA),
        ("0-", DATA),
        ("-0", b""),
    ],
)
def test_only_the_bytes_of_a_range_are_requested(byte_range: str, expected: bytes, filled: Cloud) -> None:
    """Counted from 0, the last byte included, or from the end; only these bytes are requested."""
    assert read(filled, "gs://bkt/data", byte_range=byte_range) == expected
    assert read(filled, "gs://bkt/empty", byte_range="0-") == b""


@pytest.mark.parametrize("byte_range", ["", "5", "-", "5-4", "a-b", "1-2-3", "--5", " 1-2", "1" * 30 + "-"])
def test_wrong_ranges(byte_range: str, cloud: Cloud) -> None:
    """They are refused before any request, with the rule and the value."""
    with pytest.raises(ValueError, match="`byte_range` must be FIRST-LAST") as caught:
        read(cloud, "gs://bkt/data", byte_range=byte_range)
    assert repr(byte_range) in str(caught.value)
    assert not cloud.requests


@pytest.mark.parametrize(
    ("address", "byte_range", "text", "hint"),
    [
        ("gs://bkt/none", None, "gs://bkt/none does not exist", "check the name"),
        ("gs://bkt/x", None, "gs://bkt/x does not exist", "there are objects below it: name an object in it, or use"),
        ("gs://bkt/x/", None, "gs://bkt/x/ is a folder", "name an object in it"),
        ("gs://bkt/x*", None, "only folders match gs://bkt/x*", "use a pattern with"),
        ("gs://bkt/dog", "5-", "has 5 bytes, and the range begins at byte 5", None),
    ],
)
def test_a_failed_read_has_a_reason_and_a_cure(
    address: str, byte_range: str | None, text: str, hint: str | None, filled: Cloud
) -> None:
    """With the reason and the cure."""
    with pytest.raises(TransferError) as caught:
        read(filled, address, byte_range=byte_range)
    assert text in str(caught.value)
    assert (caught.value.hint or "").startswith(hint or "")


@pytest.mark.parametrize("byte_range", [None, "1000-250000"])
@pytest.mark.parametrize(
    "faults",
    [
        [Fault.truncate(50_000, operation=GET, path="alt=media")],
        [Fault.truncate(50_000, reset=True, operation=GET, path="alt=media"), Fault.status(503, operation=GET)],
        [Fault.ignore_range(operation=GET), Fault.reset(operation=GET)],
    ],
)
def test_broken_connections(faults: list[Fault], byte_range: str | None, filled: Cloud) -> None:
    """The rest is requested from the same version, and no byte is written twice."""
    filled.fault(*faults)
    expected = DATA if byte_range is None else DATA[1000:250_001]
    assert read(filled, "gs://bkt/data", byte_range=byte_range) == expected
    media = [one.query for one in filled.requests if "alt=media" in one.query]
    assert all("generation=" in query for query in media)


@pytest.mark.parametrize("byte_range", [None, "10-", "0-"])
@pytest.mark.parametrize("seed", range(2))
def test_random_faults_change_nothing(seed: int, byte_range: str | None, filled: Cloud) -> None:
    """The bytes are right under every kind of fault."""
    filled.fault(random_faults(seed, unavailable=0.2, truncated=0.4, reset_after=0.1))
    assert read(filled, "gs://bkt/data", byte_range=byte_range) == DATA[10 if byte_range == "10-" else 0 :]


@pytest.mark.parametrize("byte_range", [None, "10-"])
def test_versions_never_mix(byte_range: str | None, filled: Cloud) -> None:
    """If the object is replaced after some bytes were written, it is an error."""
    filled.fault(Fault.truncate(50_000, operation=GET, path="alt=media"))
    filled.fault(Fault.replace_object(operation=GET, path="alt=media"))
    stream = io.BytesIO()
    with virtual_time(), pytest.raises(SourceChanged, match="was replaced or deleted while it was read"):
        cat("gs://bkt/data", stream, byte_range=byte_range, settings=Settings(endpoint=filled.url))
    first = 0 if byte_range is None else 10
    assert stream.getvalue() == DATA[first : first + len(stream.getvalue())]


@pytest.mark.parametrize("byte_range", [None, "0-"])
def test_wrong_bytes_are_an_error(byte_range: str | None, filled: Cloud) -> None:
    """By their CRC32C, also for a range that is the whole object."""
    filled.fault(Fault.corrupt(7, operation=GET, path="alt=media"))
    with pytest.raises(ChecksumMismatch):
        read(filled, "gs://bkt/data", byte_range=byte_range)


def test_a_server_without_ranges(filled: Cloud) -> None:
    """It is an error after some attempts: the wrong bytes are not written."""
    filled.fault(Fault.ignore_range(operation=GET, times=None))
    with pytest.raises(TransferError, match="the server does not send ranges of it"):
        read(filled, "gs://bkt/data", byte_range="10-20")


def test_whole_objects_are_decoded_and_ranges_are_not(cloud: Cloud) -> None:
    """Whole objects are decoded, and ranges are of the stored bytes."""
    packed = gzip.compress(b"some text", mtime=0)
    cloud.store.put("bkt", "packed", packed, {"contentEncoding": "gzip"})
    assert read(cloud, "gs://bkt/packed") == b"some text"
    assert read(cloud, "gs://bkt/packed", byte_range="0-9") == packed[:10]
    assert read(cloud, "gs://bkt/packed", byte_range="0-") == packed


def test_a_generation_is_read_or_nothing(filled: Cloud) -> None:
    """An address with a generation never means another version."""
    generation = filled.store.object("bkt", "dog").generation
    assert read(filled, f"gs://bkt/dog#{generation}") == b"a dog"
    filled.fault(Fault.replace_object(b"other", operation=GET, path="alt=media"))
    with pytest.raises(HttpError, match="404"):
        read(filled, f"gs://bkt/dog#{generation}")
