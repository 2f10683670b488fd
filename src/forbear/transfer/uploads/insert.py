"""Insert: a whole object in one request, written once, whatever becomes of the reply. It knows no sessions."""

import json
import secrets
from collections.abc import Mapping
from typing import Any

from forbear.transfer.checksum import crc32c_of
from forbear.transfer.errors import HttpError, Stalled, maybe_done
from forbear.transfer.files import PIECE
from forbear.transfer.objects import FIELDS, Object
from forbear.transfer.precondition import Precondition
from forbear.transfer.progress import current_progress
from forbear.transfer.storage.bodies import RequestBody
from forbear.transfer.storage.client import Storage
from forbear.transfer.uploads.sources import File, Source
from forbear.transfer.uploads.verify import is_refusal, mismatch, verified
from forbear.transfer.wire.response import WireError

_TRIES = 3
_BOUNDARY = secrets.token_hex(16)  # nobody else knows it, so it does not occur in any data
_KIND = {"Content-Type": f"multipart/related; boundary={_BOUNDARY}"}


async def insert(
    storage: Storage, source: Source, size: int, condition: Precondition, resource: Mapping[str, Any]
) -> Object:
    """Upload a source of `size` bytes; `resource` is what else the object is to have."""
    moved = current_progress.get().moved
    await condition.look()
    data = source.read() if isinstance(source, File) and size <= PIECE else None
    if data is None:
        crc = await source.crc32c()
    else:
        size, crc = len(data), crc32c_of(data)
    opening, ending = _around({**resource, "crc32c": crc})
    body: bytes | RequestBody
    if data is not None:
        body = b"".join((opening, data, ending))
    else:
        body = RequestBody(lambda: source.pieces(0, size), size, moved, opening, ending)
    refused, in_doubt = 0, False
    while True:
        query = {"uploadType": "multipart", **condition.query, "fields": FIELDS}
        try:
            reply = await storage.call(
                f"upload {source.name}", "POST", condition.target.upload_path, query, headers=_KIND, body=body
            )
        except HttpError as error:
            in_doubt = in_doubt or maybe_done(error)  # once it may be there, it may be there in every later round
            if error.status == 412:
                found = await condition.refused(error, resource, (size, crc) if in_doubt else None)
                if found is None:
                    continue
            elif is_refusal(error):
                source.check()
                refused += 1
                if refused == _TRIES:
                    raise mismatch(source.name, condition.target) from error
                continue
            else:
                raise
        except (WireError, Stalled) as error:
            found = await storage.stat(condition.target) if maybe_done(error) else None
            if found is None or not condition.is_new(found) or (found.size, found.crc32c) != (size, crc):
                raise  # else it was answered, and is there, but the answer broke off
        else:
            condition.guessed_right()
            found = await verified(storage, condition, Object.of(reply.json()), (size, crc), source.name)
        moved(size - (body.moved_bytes if isinstance(body, RequestBody) else 0))
        return found


def _around(resource: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """What stands before and after the data."""
    opening = (
        f"--{_BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(resource)}\r\n"
        f"--{_BOUNDARY}\r\nContent-Type: {resource['contentType']}\r\n\r\n"
    )
    return opening.encode(), f"\r\n--{_BOUNDARY}--\r\n".encode()
