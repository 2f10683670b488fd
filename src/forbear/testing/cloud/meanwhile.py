"""What somebody else does to an object while a client is at work: no effect of the client, and not in the journal."""

from forbear.testing.cloud.api.uploads import named
from forbear.testing.cloud.call import Call
from forbear.testing.cloud.content import Content, content_of
from forbear.testing.cloud.errors import ApiError
from forbear.testing.cloud.model import StoredObject

_FLIPPED = bytes(each ^ 0xFF for each in range(256))


def _replace_object(call: Call, content: bytes | None) -> None:
    """Write the object that the call is about: with this content, or the old one with every bit flipped."""
    place = _place(call)
    if place is None:
        return
    bucket, name = place
    old = _live(call, bucket, name)
    written = content_of(b"somebody else's" if content is None else content)
    if content is None and old is not None:
        written = Content(bytes(piece).translate(_FLIPPED) for piece in old.content.pieces)
    try:
        call.store.put(bucket, name, written, None if old is None else old.fields)
    except ApiError:
        return  # there is no such bucket, or no such name


def _delete_object(call: Call) -> None:
    """Delete the object that the call is about, if it is there."""
    place = _place(call)
    old = None if place is None else _live(call, *place)
    if old is not None:
        call.store.delete_object(old, for_good=False)


def _place(call: Call) -> tuple[str, str] | None:
    """The bucket and the object that the call is about: of a copy, the source."""
    session = call.store.sessions.get(call.query.get("upload_id", ""))
    if session is not None:
        return session.bucket, session.name
    try:
        return call.names["bucket"], call.names.get("object") or named(call)
    except ApiError:
        return None


def _live(call: Call, bucket: str, name: str) -> StoredObject | None:
    home = call.store.buckets.get(bucket)
    return None if home is None else home.live(name)
