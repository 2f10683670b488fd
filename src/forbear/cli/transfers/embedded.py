"""`--embedded`: a cloud that lives as long as the command, with the buckets that were named. It transfers nothing."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from forbear.cli.output import BadInput, tell
from forbear.cli.transfers.reporter import of_bytes, of_count
from forbear.testing import cloud
from forbear.testing.cloud.store import Store
from forbear.transfer.objects import Url, is_cloud

_SHOWN = 10
_LARGEST_BODY = 256 * 1024 * 1024
_MOST_STORED = 8 * 1024**3


@contextmanager
def embedded(places: Sequence[str], storm: int | None, *, quiet: bool) -> Generator[str]:
    """Run a cloud with the buckets of `places` and yield its URL; say in the end what it held, unless `quiet`."""
    buckets = sorted({_bucket(place) for place in places if is_cloud(place)})
    if not buckets:
        raise BadInput("`--embedded` needs a bucket to create", "name one, such as gs://demo/")
    with cloud.Cloud(body_limit=_LARGEST_BODY, memory_limit=_MOST_STORED) as running:
        for bucket in buckets:
            running.store.create_bucket(bucket)
        if storm is not None:
            running.fault(cloud.storm(storm))
        yield running.url
        if quiet:
            return
        for bucket in buckets:
            _describe(running.store, bucket)
        if storm is not None:
            struck = sum(request.fault is not None for request in running.requests)
            tell(f"the storm met {struck} of {of_count(running.requests.total, 'request')}")


def _bucket(place: str) -> str:
    try:
        return Url.parse(place).bucket
    except ValueError as error:
        raise BadInput(str(error)) from None


def _describe(store: Store, name: str) -> None:
    objects = list(store.bucket(name).versions())
    if not objects:
        tell(f"gs://{name} held nothing: an embedded cloud is empty when it starts")
        return
    tell(
        f"gs://{name} held {of_count(len(objects), 'object')}, {of_bytes(sum(len(item.content) for item in objects))}:"
    )
    for item in objects[:_SHOWN]:
        tell(f"  {item.name}  {of_bytes(len(item.content))}")
    if len(objects) > _SHOWN:
        tell(f"  and {len(objects) - _SHOWN} more")
