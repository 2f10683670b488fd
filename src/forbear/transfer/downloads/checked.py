"""Filling until the checksum is right: bytes that arrive wrong come again, and wrong ones never pass for right."""

from forbear.core.verdict import PERMANENT, TRANSIENT
from forbear.transfer.downloads.fetch import Fetch
from forbear.transfer.downloads.sinks import Sink
from forbear.transfer.downloads.slices import Slices
from forbear.transfer.errors import ChecksumMismatch
from forbear.transfer.progress import current_progress
from forbear.transfer.storage.calls import Retries
from forbear.transfer.wire.response import Response


async def fill_checked(fetch: Fetch, sink: Sink | Slices, reply: Response | None, *, restarts: int) -> None:
    """Bring what is missing, and everything once more where the checksum is wrong, for at most so many `restarts`.

    `reply` has the object from its beginning, if it is there already. What the server decoded has no checksum.
    """
    version, patience = fetch.version, Retries(fetch.policy, fetch.what)
    while True:
        if sink.position < version.size or not version.size:
            await (sink.fill(fetch, reply) if isinstance(sink, Slices) else fetch.fill(sink, reply))
        elif reply is not None:
            reply.close()  # unread, it could keep the server from the next
        reply = None
        found = sink.checksum.text
        if sink.decoded and found == version.crc32c and sink.position == version.size:
            sink.decoded = False  # nothing was there to be undone: these are the stored bytes
        if sink.decoded or found == version.crc32c:
            patience.progressed()
            return
        error = ChecksumMismatch(
            f"{version.url} arrived with other bytes: their CRC32C is {found}, and should be {version.crc32c}"
        )
        await patience.after(error, TRANSIENT if restarts else PERMANENT)
        restarts -= 1
        current_progress.get().moved(-sink.position)
        sink.restart()
