"""`stat`: all that the service says of objects."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any, Self

from forbear.adapters import dataclass, error_text
from forbear_transfer.commands.selection import check_addresses, objects_at
from forbear_transfer.encryption import Keys, check_keys, matching
from forbear_transfer.errors import HttpError, TransferError, WrongResponse
from forbear_transfer.objects import Object, seconds_of_time
from forbear_transfer.runs import list_blocking
from forbear_transfer.storage.client import Settings, Storage

_FOLDER = "list it with `forbear ls`, or name an object in it"


@dataclass(frozen=True, slots=True)
class ObjectDetails:
    """One version of an object with all its metadata; None means that the service states no value.

    `object` has what a listing states: address, size, checksums, headers and custom metadata. `created`,
    `noncurrent_since` and `retention_expires` are in epoch seconds. `components` is the number of parts of a composite
    object. Example: see `stat`.
    """

    object: Object
    created: float | None = None
    noncurrent_since: float | None = None
    components: int | None = None
    kms_key: str | None = None
    temporary_hold: bool = False
    event_based_hold: bool = False
    retention_expires: float | None = None

    @classmethod
    def of(cls, resource: Mapping[str, Any]) -> Self:
        """Return the details in `resource`, decoded JSON of the API; WrongResponse if it describes no object."""
        try:
            there = Object.of(resource)
            return cls(
                object=there,
                created=_read_time(resource, "timeCreated"),
                noncurrent_since=_read_time(resource, "timeDeleted"),
                components=None if resource.get("componentCount") is None else int(resource["componentCount"]),
                kms_key=there.kms_key,
                temporary_hold=there.temporary_hold,
                event_based_hold=there.event_based_hold,
                retention_expires=there.retention_expires,
            )
        except (ValueError, TypeError, OverflowError) as error:
            raise WrongResponse(f"the server's response does not describe an object: {error_text(error)}") from error


def stat(
    addresses: str | Sequence[str],
    *,
    literal: bool | None = None,
    decryption_keys: Keys | None = None,
    settings: Settings | None = None,
) -> list[ObjectDetails]:
    """Return the details of the objects that `addresses` name, which may have the wildcards of `cp`.

    `literal` is that of `cp`. The checksums of an object with a customer-supplied key are stated only if it is among
    `decryption_keys`.

    TransferError for an address that names no object, or if the service cannot be queried. ValueError for an invalid
    address. RuntimeError inside a running event loop, since it blocks.

    >>> [details] = stat("gs://my-bucket/photos/1.jpg")
    >>> details.object.size, details.temporary_hold
    (7, False)
    """
    names, keys = check_addresses(addresses, literal=literal), check_keys(decryption_keys)

    found = partial(astat, addresses=names, literal=literal, decryption_keys=keys)
    return list_blocking(settings, found, "astat")


async def astat(
    storage: Storage,
    addresses: str | Sequence[str],
    *,
    literal: bool | None = None,
    decryption_keys: Keys | None = None,
) -> AsyncGenerator[ObjectDetails]:
    """Yield over an open Storage what `stat` returns, one object after the other. Example: see `stat`."""
    keys = check_keys(decryption_keys)
    async for _, listed in objects_at(
        storage, check_addresses(addresses, literal=literal), literal=literal, cure=_FOLDER
    ):
        url, key = listed.url, storage.key_headers(matching(listed, keys))
        try:
            response = await storage.call(
                f"look at {url}", "GET", url.path, {"generation": url.generation}, headers=key
            )
        except HttpError as error:
            if error.status != 404:
                raise
            raise TransferError(f"{url} was replaced or deleted meanwhile", "run it again") from error
        yield ObjectDetails.of(response.json())


def _read_time(resource: Mapping[str, Any], name: str) -> float | None:
    value = resource.get(name)
    return None if value is None else seconds_of_time(value)
