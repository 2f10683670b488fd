"""The part of the workload that reads, changes, joins, copies and deletes objects that are there already."""

from forbear.cli.demo.ask import Ask, Operation, Proof, Send, single
from forbear.cli.demo.site import BUCKET, IF_ABSENT, OBJECTS, Site, body, is_there, live, writes
from forbear.testing.cloud.storage.store import Store

_PAGE = 4


def download(site: Site, name: str) -> Operation:
    """The bytes of an object, all at once."""
    data = site.put(name, 30_000).data

    async def perform(send: Send) -> bytes:
        return (await send(Ask(name, "read", "GET", f"{OBJECTS}/{name}?alt=media"))).content

    return Operation(name, True, perform, data)


def download_to_sink(site: Site, name: str) -> Operation:
    """The bytes of an object, written to a sink as they come, as into an open file."""
    data = site.put(name, 200_000).data

    async def perform(send: Send) -> bytes:
        sink = bytearray()
        await send(Ask(name, "read", "GET", f"/download{OBJECTS}/{name}?alt=media", sink=sink))
        return bytes(sink)

    return Operation(name, True, perform, data)


def listing(site: Site, name: str) -> Operation:
    """The names of some objects, page by page."""
    names = [site.put(f"{name}-{number}", 10).name for number in range(2 * _PAGE + 1)]

    async def perform(send: Send) -> bytes:
        found = list[str]()
        token: str | None = ""
        number = 0
        while token is not None:
            number += 1
            path = f"{OBJECTS}?prefix={name}-&maxResults={_PAGE}&pageToken={token}"
            page = (await send(Ask(name, f"page-{number}", "GET", path))).json()
            found += [item["name"] for item in page["items"]]
            token = page.get("nextPageToken")
        return "\n".join(found).encode()

    return Operation(name, True, perform, "\n".join(names).encode())


def metadata(site: Site, name: str) -> Operation:
    """A change of metadata, under the condition that nobody has changed it before."""
    return _patch(site, name, "?ifMetagenerationMatch=1")


def metadata_unconditional(site: Site, name: str) -> Operation:
    """A change of metadata, without a condition."""
    return _patch(site, name, "")


def grant(site: Site, name: str) -> Operation:
    """A new entry in the access control list of an object, which takes no condition."""
    site.put(name)
    content = body({"entity": "allUsers", "role": "READER"})
    ask = Ask(name, "write", "POST", f"{OBJECTS}/{name}/acl", content)

    def kept(store: Store) -> bool:
        item = live(store, name)
        return item is not None and "allUsers" in item.acl

    return single(ask, repeatable=False, kept=kept)


def compose(site: Site, name: str) -> Operation:
    """Two objects joined into a new one, under a condition."""
    parts = [site.put(f"{name}-{number}") for number in range(2)]
    content = body({"sourceObjects": [{"name": part.name} for part in parts]})
    data = b"".join(part.data for part in parts)
    path = f"{OBJECTS}/{name}/compose?{IF_ABSENT}"
    ask = Ask(name, "write", "POST", path, content, proof=is_there(name, data))
    return writes(ask, data, repeatable=True)


def append(site: Site, name: str) -> Operation:
    """An object appended to another, which is a source and the destination, without a condition."""
    whole, part = site.put(name), site.put(f"{name}-more")
    content = body({"sourceObjects": [{"name": whole.name}, {"name": part.name}]})
    ask = Ask(name, "write", "POST", f"{OBJECTS}/{name}/compose", content)
    return writes(ask, whole.data + part.data, repeatable=False)


def copy(site: Site, name: str) -> Operation:
    """A copy, under a condition."""
    source = site.put(f"{name}-source")
    path = f"{OBJECTS}/{source.name}/copyTo/b/{BUCKET}/o/{name}?{IF_ABSENT}"
    ask = Ask(name, "write", "POST", path, proof=is_there(name, source.data))
    return writes(ask, source.data, repeatable=True)


def rewrite_unconditional(site: Site, name: str) -> Operation:
    """A copy by rewriting, without a condition."""
    source = site.put(f"{name}-source")
    path = f"{OBJECTS}/{source.name}/rewriteTo/b/{BUCKET}/o/{name}"
    return writes(Ask(name, "write", "POST", path), source.data, repeatable=False)


def delete(site: Site, name: str) -> Operation:
    """An object deleted, under the condition that it is the one that was meant."""
    generation = site.put(name).generation
    path, proof = f"{OBJECTS}/{name}?ifGenerationMatch={generation}", Proof(f"{OBJECTS}/{name}", None)
    ask = Ask(name, "write", "DELETE", path, proof=proof)
    return single(ask, repeatable=True, kept=lambda store: live(store, name) is None)


def _patch(site: Site, name: str, condition: str) -> Operation:
    site.put(name)
    change = {"metadata": {"by": name}}
    path = f"{OBJECTS}/{name}"
    proof = Proof(path, change) if condition else None
    ask = Ask(name, "write", "PATCH", path + condition, body(change), proof=proof)

    def kept(store: Store) -> bool:
        item = live(store, name)
        return item is not None and item.fields.get("metadata") == change["metadata"]

    return single(ask, repeatable=bool(condition), kept=kept)
