"""Insert: a whole object in one request, written once, whatever becomes of the reply. It knows no sessions."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from forbear.core.report import report
from forbear.transfer.body import PIECE, Body
from forbear.transfer.checksum import crc32c_of
from forbear.transfer.claim import Claim
from forbear.transfer.errors import HttpError
from forbear.transfer.meter import meter
from forbear.transfer.objects import FIELDS, Object
from forbear.transfer.sources import File, Stream
from forbear.transfer.storage import Storage
from forbear.transfer.verify import is_refusal, mismatch, verified

_TRIES = 3


async def insert(
    storage: Storage, source: File | Stream, size: int, claim: Claim, resource: Mapping[str, Any]
) -> Object:
    """Upload a source of `size` bytes; `resource` is what else the object is to have."""
    moved = meter.get().moved
    data = source.read() if isinstance(source, File) and size <= PIECE else None
    crc = await source.crc32c() if data is None else crc32c_of(data)
    kind, opening, ending = _multipart({**resource, "crc32c": crc})
    body: bytes | Body
    if data is not None:
        body = b"".join((opening, data, ending))
    else:
        body = Body(lambda: source.pieces(0, size), size, moved, storage.stall_timeout, opening, ending)
    refused = 0
    while True:
        query = {"uploadType": "multipart", **claim.query, "fields": FIELDS}
        try:
            reply = await storage.call(
                f"upload {source.name}", "POST", claim.target.upload_path, query, headers=kind, body=body
            )
        except HttpError as error:
            if error.status == 412:
                found = await claim.refused(error, resource, (size, crc) if _in_doubt(error) else None)
                if found is None:
                    continue
            elif is_refusal(error):
                source.check()
                refused += 1
                if refused == _TRIES:
                    raise mismatch(source.name, claim.target) from error
                continue
            else:
                raise
        else:
            found = await verified(storage, Object.of(reply.json()), size, crc, source.name)
        moved(size - (body.told if isinstance(body, Body) else 0))
        return found


def _multipart(resource: Mapping[str, Any]) -> tuple[Mapping[str, str], bytes, bytes]:
    """The header that names the boundary, and what stands before and after the data."""
    boundary = secrets.token_hex(16)
    opening = (
        f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(resource)}\r\n"
        f"--{boundary}\r\nContent-Type: {resource['contentType']}\r\n\r\n"
    )
    kind = {"Content-Type": f"multipart/related; boundary={boundary}"}
    return kind, opening.encode(), f"\r\n--{boundary}--\r\n".encode()


def _in_doubt(error: HttpError) -> bool:
    """Whether an earlier attempt may have worked."""
    tried = report(error)
    return tried is not None and tried.maybe_done
