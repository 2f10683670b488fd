"""Many operations under random faults: not one effect too many or too few."""

import pytest

from forbear.services import cloud_storage
from forbear_cloud import Cloud, random_faults
from forbear_testkit.clients.flavours import Flavour
from forbear_testkit.clients.others import EVERY

MEDIA = "/upload/storage/v1/b/bkt/o?uploadType=media&name="
DATA = bytes(range(256)) * 1200


@EVERY
@pytest.mark.parametrize("seed", [1, 2])
def test_every_effect_happens_once_in_any_weather(flavour: Flavour, cloud: Cloud, seed: int) -> None:
    """Writes with their condition happen exactly once, others at most once, and whatever is read is right."""
    cloud.fault(
        random_faults(seed, unavailable=0.15, throttled=0.1, reset_before=0.1, reset_after=0.15, truncated=0.15)
    )
    policy = cloud_storage.policy
    for number in range(12):
        safe = flavour.call(
            flavour.transport(policy),
            "POST",
            f"{cloud.url}{MEDIA}safe{number}&ifGenerationMatch=0",
            content=b"%d" % number,
        )
        if safe.error is None and safe.status == 412:
            assert safe.report.maybe_done
        elif safe.error is None:
            assert safe.status == 200
        else:  # its last response broke, whatever that said
            assert isinstance(safe.error, flavour.library.RemoteProtocolError)
        assert cloud.effects.count(resource=f"bkt/safe{number}") == 1
        flavour.call(flavour.transport(policy), "POST", f"{cloud.url}{MEDIA}bare{number}", content=b"x")
        assert cloud.effects.count(resource=f"bkt/bare{number}") <= 1
        read = flavour.call(flavour.transport(policy), "GET", f"{cloud.url}/storage/v1/b/bkt/o/safe{number}?alt=media")
        assert (read.status, read.content) == (200, b"%d" % number)


@EVERY
@pytest.mark.parametrize("seed", range(4))
def test_an_upload_in_chunks_arrives_in_any_weather(flavour: Flavour, cloud: Cloud, seed: int) -> None:
    """A caller who knows no more than the protocol gets the right bytes into one object, and out again."""
    cloud.fault(random_faults(seed, unavailable=0.15, throttled=0.1, reset_before=0.1, reset_after=0.15, truncated=0.0))
    policy = cloud_storage.policy
    start = f"{cloud.url}/upload/storage/v1/b/bkt/o?uploadType=resumable&name=big&ifGenerationMatch=0"
    session = flavour.call(flavour.transport(policy), "POST", start).response.headers["location"]
    at, status = 0, 308
    while status == 308:
        chunk = DATA[at : at + 256 * 1024]
        headers = {"Content-Range": f"bytes {at}-{at + len(chunk) - 1}/{len(DATA)}"}
        sent = flavour.call(flavour.transport(policy), "PUT", session, content=chunk, headers=headers)
        status = sent.status
        if status == 308:
            at = int(sent.response.headers["range"].rpartition("-")[2]) + 1
    assert (status, cloud.effects.count("storage.objects.insert")) == (200, 1)
    cloud.fault(random_faults(seed, truncated=0.5))
    read = flavour.call(flavour.transport(policy), "GET", f"{cloud.url}/storage/v1/b/bkt/o/big?alt=media")
    assert read.content == DATA
