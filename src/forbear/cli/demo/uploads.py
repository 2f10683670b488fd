"""The part of the workload that sends data: uploads of every form, with a condition and without."""

from collections.abc import AsyncIterable

from forbear.cli.demo.ask import Ask, Operation, Send, one_shot
from forbear.cli.demo.site import IF_ABSENT, UPLOAD, Site, body, is_there, live, writes

_CHUNK = 262_144


def media(site: Site, name: str) -> Operation:
    """An upload in one request, under the condition that the object is not there yet."""
    data = site.data(name, 8_000)
    return _media(name, data, data, IF_ABSENT)


def media_unconditional(site: Site, name: str) -> Operation:
    """An upload in one request, without a condition."""
    data = site.data(name, 8_000)
    return _media(name, data, data)


def stream(site: Site, name: str) -> Operation:
    """An upload from a source that can be read once, under a condition."""
    data = site.data(name, 100_000)
    return _media(name, data, one_shot(data), IF_ABSENT)


def stream_unconditional(site: Site, name: str) -> Operation:
    """An upload from a source that can be read once, without a condition."""
    data = site.data(name, 100_000)
    return _media(name, data, one_shot(data))


def multipart(site: Site, name: str) -> Operation:
    """Metadata and data in one request, under a condition."""
    return _multipart(name, site.data(name, 8_000), IF_ABSENT)


def multipart_unconditional(site: Site, name: str) -> Operation:
    """Metadata and data in one request, without a condition."""
    return _multipart(name, site.data(name, 8_000))


def resumable(site: Site, name: str) -> Operation:
    """An upload in three chunks, which goes on where the session says."""
    data = site.data(name, 2 * _CHUNK + 75_000)
    start = Ask(name, "start", "POST", f"{UPLOAD}?uploadType=resumable&name={name}&{IF_ABSENT}")

    async def perform(send: Send) -> None:
        session = (await send(start)).headers["location"]
        offset = number = 0
        while True:
            number += 1
            end = min(offset + _CHUNK, len(data))
            span = {"Content-Range": f"bytes {offset}-{end - 1}/{len(data)}"}
            reply = await send(Ask(name, f"chunk-{number}", "PUT", session, data[offset:end], span))
            if reply.status_code != 308:
                return
            offset = int(reply.headers["range"].rpartition("-")[2]) + 1 if "range" in reply.headers else 0

    return Operation(name, True, perform, data, lambda store: live(store, name) is not None)


def rivals(site: Site, name: str) -> tuple[Operation, Operation]:
    """An unconditional overwrite, and another writer who overwrites the same object as soon as it was tried once."""
    target, rival = f"{name}-shared", f"{name}-rival"
    site.put(target)
    data, newer = site.data(name, 8_000), site.data(rival, 8_000)
    arrived: list[object] = []

    async def meanwhile(send: Send) -> None:
        arrived.append(await send(Ask(rival, "write", "POST", _media_path(target), newer)))

    async def overwrite(_: Send) -> None:
        if not arrived:
            raise RuntimeError("the other writer, whom no fault meets, failed: this is a bug of the demo")

    ask = Ask(name, "write", "POST", _media_path(target), data, meanwhile=meanwhile)
    second = Operation(rival, False, overwrite, newer, lambda store: live(store, target) is not None)
    return writes(ask, data, repeatable=False, target=target), second


def _media_path(name: str, condition: str = "") -> str:
    return "&".join(filter(None, (f"{UPLOAD}?uploadType=media&name={name}", condition)))


def _media(name: str, data: bytes, content: bytes | AsyncIterable[bytes], condition: str = "") -> Operation:
    path, proof = _media_path(name, condition), is_there(name, data) if condition else None
    return writes(Ask(name, "write", "POST", path, content, proof=proof), data, repeatable=bool(condition))


def _multipart(name: str, data: bytes, condition: str = "") -> Operation:
    line = b"\r\n--demo"
    head = b"--demo\r\nContent-Type: application/json\r\n\r\n" + body({"name": name, "metadata": {"by": name}})
    content = b"".join((head, line, b"\r\nContent-Type: application/octet-stream\r\n\r\n", data, line, b"--\r\n"))
    path = "&".join(filter(None, (f"{UPLOAD}?uploadType=multipart", condition)))
    headers = {"Content-Type": "multipart/related; boundary=demo"}
    proof = is_there(name, data) if condition else None
    ask = Ask(name, "write", "POST", path, content, headers, proof=proof)
    return writes(ask, data, repeatable=bool(condition))
