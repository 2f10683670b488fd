"""Filling until the checksum is right: bytes that arrive wrong come again, and wrong ones never pass for right."""

import aiohttp

from forbear.core.verdict import PERMANENT, TRANSIENT
from forbear.transfer.cloud.patience import Patience
from forbear.transfer.downloads.fetch import Fetch
from forbear.transfer.downloads.sinks import Sink
from forbear.transfer.downloads.slices import Slices
from forbear.transfer.errors import ChecksumMismatch
from forbear.transfer.meter import current_meter


async def fill_checked(
    fetch: Fetch, goods: Sink | Slices, reply: aiohttp.ClientResponse | None, *, restarts: int
) -> None:
    """Bring what is missing, and everything once more where the checksum is wrong, for at most so many `restarts`.

    `reply` has the object from its beginning, if it is there already. What the server decoded has no checksum.
    """
    item, patience = fetch.item, Patience(fetch.policy, fetch.what)
    while True:
        if goods.position < item.size or not item.size:
            await (goods.fill(fetch, reply) if isinstance(goods, Slices) else fetch.fill(goods, reply))
        reply = None
        found = goods.checksum.text
        if goods.decoded or found == item.crc32c:
            patience.progressed()
            return
        error = ChecksumMismatch(
            f"{item.url} arrived with other bytes: their CRC32C is {found}, and should be {item.crc32c}"
        )
        await patience.after(error, TRANSIENT if restarts else PERMANENT)
        restarts -= 1
        current_meter.get().moved(-goods.position)
        goods.restart()
