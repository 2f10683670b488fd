"""The limit of bytes per second: kept up and down, by many transfers together, and through failures."""

from pathlib import Path

import pytest

from forbear.services import cloud_storage
from forbear.testing import virtual_time
from forbear_cloud import Cloud, Fault
from forbear_testkit.transfer.uploads import CHUNK, INSERT, MIB, SEND, TARGET, data_of, file_of, stored, versions
from forbear_testkit.transfer.wire_server import OK, serving
from forbear_transfer import Settings, Storage, cp
from forbear_transfer.downloads.download import download
from forbear_transfer.uploads.upload import upload
from forbear_transfer.wire.pool import Pool
from forbear_transfer.wire.watched import RateLimit

RATE = 512 * 1024


def test_waits() -> None:
    """Each part waits for those before it; time that passed without data is not saved up."""
    with virtual_time() as time:
        rate = RateLimit(100)
        assert [rate.delay(50), rate.delay(100), rate.delay(10)] == [0.0, 0.5, 1.5]
        time.advance(60)
        assert [rate.delay(10), rate.delay(10)] == [0.0, pytest.approx(0.1)]
        assert rate.delay(10, received=True) == pytest.approx(0.3)
    assert RateLimit(10).step == 4096
    assert RateLimit(4 * MIB).step == MIB


@pytest.mark.anyio
@pytest.mark.parametrize("size", [100 * 1024, 3 * MIB, 10 * MIB], ids=["bytes", "one request", "session"])
async def test_up_and_down(size: int, cloud: Cloud, tmp_path: Path) -> None:
    """A transfer takes as long as its bytes at this rate; the data is right."""
    path = file_of(tmp_path, size)
    with virtual_time() as time:
        async with Storage(endpoint=cloud.url, limit_rate=RATE) as storage:
            made = await upload(storage, path, TARGET, chunk_size=8 * CHUNK)
            up = time.elapsed
            await download(storage, made, tmp_path / "back")
            down = time.elapsed - up
    assert stored(cloud) == (tmp_path / "back").read_bytes() == data_of(size)
    least = (size - RATE / 4) / RATE
    assert least <= up <= size / RATE + 1
    assert (size - MIB) / RATE <= down <= size / RATE + 1


@pytest.mark.anyio
@pytest.mark.parametrize("size", [100 * 1024, 3 * CHUNK])
async def test_through_failures(size: int, cloud: Cloud, tmp_path: Path) -> None:
    """A reset costs its wait and the bytes that go again, and makes no second version."""
    cloud.fault(Fault.reset(when="after", operation=INSERT if size < CHUNK else SEND, nth=1))
    with virtual_time(seed=7) as time:
        async with Storage(endpoint=cloud.url, limit_rate=RATE) as storage:
            await upload(storage, file_of(tmp_path, size), TARGET, chunk_size=CHUNK)
        assert time.elapsed >= size / RATE - 1
    assert (stored(cloud), versions(cloud)) == (data_of(size), 1)


@pytest.mark.anyio
async def test_who_waits_for_its_turn_holds_no_connection() -> None:
    """A server may close an idle connection meanwhile: no byte was sent over it, and another one is opened."""

    class Rate(RateLimit):
        def delay(self, count: int, *, received: bool = False) -> float:
            for connection in pool._open:
                connection.eof_received()
            return super().delay(count, received=received)

    with serving(lambda n, head, connection: [OK]) as server:
        pool = Pool(1, 60, {}, rate=Rate(MIB))
        async with await pool.request("GET", server.url, {}) as response:
            while await response.readany():
                pass
        async with await pool.request("POST", server.url, {}, b"x") as response:
            assert response.status == 200
        assert (server.connections, server.bodies) == (2, [b"", b"x"])
        await pool.close()


@pytest.mark.anyio
async def test_a_slow_rate_is_no_stall(cloud: Cloud, tmp_path: Path) -> None:
    """A wait for the rate that is longer than the stall timeout fails nothing, since the peer is not to blame."""
    with virtual_time() as time:
        policy = cloud_storage.policy.with_attempts(1)
        async with Storage(endpoint=cloud.url, limit_rate=10 * 1024, stall_timeout=2, policy=policy) as storage:
            made = await upload(storage, file_of(tmp_path, MIB), TARGET, chunk_size=CHUNK)
            await download(storage, made, tmp_path / "back")
        assert time.elapsed > 190
    assert (tmp_path / "back").read_bytes() == data_of(MIB)


def test_all_transfers_share_it(cloud: Cloud, tmp_path: Path) -> None:
    """Twenty files side by side are no faster than one after the other."""
    for number in range(20):
        file_of(tmp_path, 100 * 1024, f"{number}.bin", seed=number)
    settings = Settings(endpoint=cloud.url, limit_rate=RATE)
    with virtual_time() as time:
        assert cp(f"{tmp_path}/*.bin", "gs://bkt/x/", settings=settings).done == 20
        assert 19 * 100 * 1024 / RATE <= time.elapsed <= 20 * 100 * 1024 / RATE + 1


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_rate_must_be_positive(limit: float) -> None:
    """Zero would never end."""
    with pytest.raises(ValueError, match=r"`limit_rate` must be more than 0 bytes per second, or None, got"):
        Storage(limit_rate=limit)
