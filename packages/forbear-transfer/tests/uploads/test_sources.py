"""Sources hash each byte once, whatever is read again, and notice a stream that ends too early."""

import gzip
import io
import mmap
from pathlib import Path

import pytest

from forbear_cloud.storage.model import crc32c_of
from forbear_transfer.errors import SourceChanged
from forbear_transfer.files import PIECE
from forbear_transfer.uploads.content import gzip_source
from forbear_transfer.uploads.sources import FileSource, stream_source

pytestmark = pytest.mark.anyio

DATA = bytes(range(256)) * 40


@pytest.mark.parametrize("again", [(0, 100), (0, 3000), (500, 3000), (999, 1001), (1000, 3000)])
async def test_a_file_hashes_bytes_once_that_it_reads_again(tmp_path: Path, again: tuple[int, int]) -> None:
    """Pieces that overlap with the bytes hashed so far, in part or as a whole, do not change the checksum."""
    (tmp_path / "file").write_bytes(DATA)
    with FileSource(tmp_path / "file") as source:
        assert b"".join(source.pieces(0, 1000)) == DATA[:1000]
        assert b"".join(source.pieces(*again)) == DATA[slice(*again)]
        assert await source.crc32c() == crc32c_of(DATA)


class Uneven(io.BytesIO):
    """A stream whose reads return other numbers of bytes each time."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._counts = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Return 700, 1400, 2100, ... bytes."""
        self._counts += 1
        return super().read(self._counts * 700)


@pytest.mark.parametrize("back", [0, 1, 699, 701, 2000])
async def test_a_stream_hashes_bytes_once_that_it_reads_again(back: int) -> None:
    """After the stream went back, pieces that begin with hashed bytes do not change the checksum."""
    source = stream_source(Uneven(DATA))
    await source.ready(0, 1000)
    await source.ready(2100, 100)
    await source.ready(back, 100)
    assert b"".join(source.pieces(back, back + 100)) == DATA[back : back + 100]
    assert await source.measure() == (len(DATA), crc32c_of(DATA))


async def test_a_stream_that_ends_before_the_stored_bytes_has_changed() -> None:
    """If a later process reads fewer bytes than were uploaded already, the error says where the stream ends."""
    source = stream_source(io.BytesIO(b"short"))
    with pytest.raises(SourceChanged, match="ends before byte 6"):
        await source.ready(6, 100)


async def test_a_file_of_the_system_is_compressed_as_a_whole(tmp_path: Path) -> None:
    """A file that states the size 0 but has content, as those in /proc have, is compressed with its content."""
    path = Path("/proc/version")
    if not path.exists():  # noqa: ASYNC240
        path = tmp_path / "file"
        path.write_bytes(DATA)
    with FileSource(path) as source:
        packed = gzip_source(source)
        await packed.ready(0, PIECE)
        assert packed.size is not None
        assert gzip.decompress(b"".join(packed.pieces(0, packed.size))) == path.read_bytes()


async def test_bytes_that_were_read_at_once_are_verified(tmp_path: Path) -> None:
    """The second reading of a small file is compared with what was sent, or compressed, and not with a third one."""
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0] = DATA[0]  # the page is dirty from here on: later changes set no time
        with FileSource(path, verifies=True) as source:
            assert source.read() == DATA
            await source.verify()
            mapped[0] = DATA[0] ^ 1
            with pytest.raises(SourceChanged):
                await source.verify()
