"""`mv`: move objects. The service copies each one, and then exactly the version that was copied is deleted."""

from collections.abc import Sequence
from functools import partial
from typing import Unpack

from forbear_transfer.commands.selection import check_addresses
from forbear_transfer.encryption import KeyOptions
from forbear_transfer.functions import run_copies
from forbear_transfer.items import Summary
from forbear_transfer.objects import is_cloud
from forbear_transfer.plans.arguments import RunOptions, make_copy_plan
from forbear_transfer.runs import RunSettings, Work, run_blocking
from forbear_transfer.storage.client import Settings, Storage


class MvOptions(KeyOptions, RunOptions, total=False):
    """The keyword options of `mv`; those of `cp` with the same names do the same."""

    recursive: bool
    literal: bool | None
    no_clobber: bool
    exclude: str | Sequence[str] | None
    include: str | Sequence[str] | None
    parallel: int | None


def mv(
    sources: str | Sequence[str], target: str, *, settings: Settings | None = None, **options: Unpack[MvOptions]
) -> Summary:
    """Move objects within Cloud Storage, also between buckets, and return the Summary.

    The targets get the names that `cp` would give them, and the options are those of `cp`: `recursive`, `literal`,
    `no_clobber`, `dry_run`, `exclude`, `include`, `on_event`, `parallel`, `state`, `encryption_key`, `kms_key` and
    `decryption_keys`. If an object has a source as its name, and it matches others, too, nothing is done without
    `literal`. Without a key for new objects, a moved object has the encryption of its new bucket.

    Each object is copied in one version, with a precondition on the target, and the copy is verified. Then that version
    of the source is deleted, and no other one: if another client has written the source meanwhile, its new version
    stays, and the item fails. After a failure, the same call again moves the rest.

    ValueError if the arguments make no sense. RuntimeError inside a running event loop, since it blocks.

    >>> mv("gs://my-bucket/photos/1.jpg", "gs://my-bucket/old/").done
    1
    >>> [each.name for each in ls("gs://my-bucket/", recursive=True)]
    ['old/1.jpg']
    """
    return run_blocking(settings, prepare_mv(sources, target, **options), "amv")


async def amv(storage: Storage, sources: str | Sequence[str], target: str, **options: Unpack[MvOptions]) -> Summary:
    """Do what `mv` does, with the same options, over an open Storage and without blocking; return the Summary.

    Example: see `mv`.
    """
    return await prepare_mv(sources, target, **options)(storage)


def prepare_mv(sources: str | Sequence[str], target: str, **options: Unpack[MvOptions]) -> Work:
    """Check the arguments of `mv`, and return what does it; ValueError or TypeError if they make no sense."""
    names = check_addresses(sources, "sources", options.get("literal"))
    if not is_cloud(target):
        raise ValueError(
            f"`target` must begin with gs://, got {target!r}; to move an object here, copy it, then delete it"
        )
    plan = make_copy_plan("mv", MvOptions, names, target, options, moves=True)
    return partial(run_copies, plan=plan, run=RunSettings.of(options))
