"""Sources as they are meant: a name is a name, and a pattern only where no object has it as its name."""

import os

from forbear.adapters import dataclass
from forbear_transfer.errors import HttpError, TransferError
from forbear_transfer.objects import Object, Url, is_cloud, unescape
from forbear_transfer.plans.wildcards import is_wild
from forbear_transfer.storage.client import Storage


@dataclass(frozen=True, slots=True)
class Source:
    """A source that the user has written as `text`: the path or address `at`, a pattern if it is `wild`.

    `exact` is the address whose whole name is the text, as long as it is not known whether there is such an object.
    `failure` is the error of looking it up. A `literal` source is a name because the user has said so.
    """

    text: str
    at: Url | str
    wild: bool = False
    exact: Url | None = None
    failure: TransferError | None = None
    literal: bool = False


def parse_source(text: str, literal: bool | None = None) -> Source:
    """Return a source: a name if `literal`, else a pattern or version, by default what exists; or ValueError."""
    if not is_cloud(text):
        wild = literal is not True and is_wild(text) and (literal is False or not os.path.lexists(text))
        return Source(text, text, wild)
    whole = Url.parse(text, versions=False)
    if literal:
        return Source(text, whole, literal=True)
    plain = Url.parse(text)
    name = unescape(plain.name)
    at = plain if name is None else Url(plain.bucket, name, plain.generation)
    is_plain = name is not None and at == whole
    source = Source(text, at, name is None, None if literal is False or is_plain else whole)
    if source.exact is None:
        check_version(source)
    return source


def check_version(source: Source) -> None:
    """Raise ValueError for a pattern with a generation."""
    url = source.at
    if isinstance(url, Url) and url.generation is not None and source.wild:
        raise ValueError(f"`sources` must be an object if it has a generation, got {source.text}; leave the number out")


async def find_folder_object(storage: Storage, url: Url, *, whole: bool) -> Object | None:
    """Return the object that stands for a folder; None without one, or if the `whole` folder has others."""
    try:
        there = await storage.stat(url) if url.name else None
    except HttpError as error:
        if error.status != 403:  # of a user who may only list
            raise
        return None
    if there is not None and whole:
        async for listed in storage.objects(url.bucket, url.name):
            if listed.name != url.name:
                return None
    return there
