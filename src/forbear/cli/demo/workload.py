"""The workload: so many operations of every kind, in an order that depends on the seed alone."""

import random
from collections.abc import Callable

from forbear.cli.demo import objects, others, uploads
from forbear.cli.demo.ask import Operation
from forbear.cli.demo.site import Site

KINDS: tuple[Callable[[Site, str], Operation | tuple[Operation, ...]], ...] = (
    uploads.media,
    uploads.media_unconditional,
    uploads.stream,
    uploads.stream_unconditional,
    uploads.multipart,
    uploads.multipart_unconditional,
    uploads.resumable,
    uploads.rivals,
    objects.download,
    objects.download_to_sink,
    objects.listing,
    objects.metadata,
    objects.metadata_unconditional,
    objects.grant,
    objects.compose,
    objects.append,
    objects.copy,
    objects.rewrite_unconditional,
    objects.delete,
    others.create_bucket,
    others.delete_bucket,
    others.create_key,
    others.create_notification,
    others.delete_notification,
)
"""An operation of several parties comes as a tuple, to be performed in this order."""


def workload(site: Site, seed: int, each: int) -> list[tuple[Operation, ...]]:
    """`each` operations of every kind, independent of each other; what they need is put in place."""
    made = [kind(site, f"{kind.__name__.replace('_', '-')}-{number:03}") for kind in KINDS for number in range(each)]
    groups = [group if isinstance(group, tuple) else (group,) for group in made]
    random.Random(seed).shuffle(groups)
    return groups
