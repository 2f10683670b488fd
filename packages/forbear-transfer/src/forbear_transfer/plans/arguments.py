"""The keyword options of cp, rsync and plan, and the checks of their combinations, which make the plans."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from forbear_transfer.encryption import KeyOptions, NewObjectOptions, ObjectEncryption
from forbear_transfer.errors import StrPath
from forbear_transfer.items import STREAM, ItemOptions
from forbear_transfer.metadata import ObjectMetadata, check_keywords
from forbear_transfer.objects import Url, check_scheme, is_cloud
from forbear_transfer.plans.cp import CopyPlan
from forbear_transfer.plans.filters import Filter, LinkRule, check_links
from forbear_transfer.plans.sources import Source, parse_source
from forbear_transfer.plans.targets import names_folder
from forbear_transfer.progress import Listener
from forbear_transfer.storage.client import Storage

if TYPE_CHECKING:
    from forbear_transfer.plans.rsync import RsyncPlan


class CopyOptions(NewObjectOptions, KeyOptions, total=False):
    """The keyword options of all plans: for new objects, for the keys of existing ones, and for which names count."""

    exclude: str | Sequence[str] | None
    include: str | Sequence[str] | None
    gzip: bool
    packed: bool
    verify_source: bool
    preserve_posix: bool
    links: LinkRule | None


class SharedOptions(CopyOptions, total=False):
    """The keyword options that `cp` and `rsync` share, also as commands."""

    manifest: StrPath | None
    parallel: int | None


class RunOptions(TypedDict, total=False):
    """The keyword options of a run that commands set themselves."""

    dry_run: bool
    on_event: Listener | None
    state: StrPath | None


class PlanOptions(CopyOptions, total=False):
    """The keyword options of `plan`; the docstring of `cp` describes them."""

    recursive: bool
    literal: bool | None
    generation: int | None
    no_clobber: bool


class CpOptions(PlanOptions, SharedOptions, RunOptions, total=False):
    """The keyword options of `cp`, whose docstring describes them."""


class RsyncOptions(SharedOptions, RunOptions, total=False):
    """The keyword options of `rsync`, whose docstring describes them."""

    recursive: bool
    delete: bool
    checksum: bool
    size_only: bool
    update: bool
    max_delete: int | None


def make_copy_plan(
    function: str,
    known: type,
    sources: StrPath | Sequence[StrPath],
    target: StrPath,
    options: Mapping[str, Any],
    *,
    moves: bool = False,
) -> CopyPlan:
    """Return the plan of a copy, or of moves, by the keyword options of `function`, which are the keys of `known`.

    ValueError if they make no sense, TypeError for an unknown one.
    """
    each, names = _parse_common(function, known, options)
    paths = (sources,) if isinstance(sources, str | os.PathLike) else sources
    plan = CopyPlan(
        sources=_parse_sources([os.fspath(source) for source in paths], options.get("literal")),
        target=os.fspath(target),
        recursive=options.get("recursive", False),
        names=names,
        each=each,
        moves=moves,
        links=check_links(options.get("links"), has_files=any(not is_cloud(os.fspath(source)) for source in paths)),
        state=options.get("state"),
    )
    _check_copy(plan)
    return plan


def _parse_sources(texts: Sequence[str], literal: bool | None) -> tuple[Source, ...]:
    if not texts or not all(texts):
        raise ValueError("`sources` must name at least one file, folder or object, and none may be empty; name one")
    for text in texts:
        check_scheme("sources", text)
    return tuple(parse_source(text, literal) for text in texts)


def _check_copy(plan: CopyPlan) -> None:
    sources, target = [source.text for source in plan.sources], plan.target
    if not target:
        raise ValueError(
            "`target` must name a file, a folder or an address in the cloud, got nothing; for this folder write ."
        )
    if plan.each.generation is not None:
        _check_required_generation(plan, plan.each.generation)
    _check_for_new(plan.each, target)
    for source in sources:
        _check_packing(plan.each, source, target)
    check_scheme("target", target)
    if is_cloud(target):
        Url.parse(target, versions=False)
    else:
        local = next((source for source in sources if not is_cloud(source)), None)
        if local is not None:
            raise ValueError(
                f"the source or the target must begin with gs://, got {local} and {target}; "
                "on this machine alone, use the cp of the system"
            )
    if STREAM in sources and (len(sources) > 1 or names_folder(target)):
        raise ValueError("standard input (-) must be the only source, and `target` must name the object")
    if plan.is_settled:
        plan.check()


def _check_required_generation(plan: CopyPlan, generation: int) -> None:
    if generation < 0:
        raise ValueError(f"`generation` must be 0 (no object) or the number of a version, got {generation}")
    if not is_cloud(plan.target):
        raise ValueError(f"`generation` is for targets in the cloud, got {plan.target}; leave it out")
    if plan.each.no_clobber:
        raise ValueError("`generation` does not go with `no_clobber`; leave one of them out")


def prepare_rsync_plan(
    source: StrPath, target: StrPath, options: Mapping[str, Any]
) -> "Callable[[Storage], RsyncPlan]":
    """Return what makes the plan of an rsync over an open Storage, by its keyword options.

    ValueError if they make no sense, TypeError for an unknown one.
    """
    from forbear_transfer.plans.comparer import RsyncRules  # both take a while to load, and other commands need none
    from forbear_transfer.plans.rsync import RsyncPlan

    source, target = os.fspath(source), os.fspath(target)
    each, names = _parse_common("rsync", RsyncOptions, options)
    rules = RsyncRules(**{name: options[name] for name in RsyncRules.__annotations__ if name in options})
    if not source or not target:
        raise ValueError("`source` and `target` must each name a folder, got nothing; for this folder write .")
    check_scheme("source", source)
    check_scheme("target", target)
    if rules.checksum and rules.size_only:
        raise ValueError("`checksum` does not go with `size_only`; leave one of them out")
    if rules.max_delete is not None and rules.max_delete < 0:
        raise ValueError(f"`max_delete` must be 0 or more, got {rules.max_delete}")
    if rules.max_delete is not None and not rules.delete:
        raise ValueError("`max_delete` is for `delete`; use both, or none")
    _check_for_new(each, target)
    _check_packing(each, source, target)
    one = Url.parse(source, versions=False) if is_cloud(source) else None
    other = Url.parse(target, versions=False) if is_cloud(target) else None
    if one is None and other is None:
        raise ValueError(
            f"the source or the target must begin with gs://, got {source} and {target}; "
            "on this machine alone, use the rsync of the system"
        )
    if one is not None and other is not None and _overlap(one, other):
        raise ValueError(
            f"`source` and `target` must not lie in each other, got {source} and {target}; name another target"
        )
    links = check_links(options.get("links"), has_files=one is None)
    plan = partial(RsyncPlan, source=one or source, target=other or target, rules=rules, names=names)
    return partial(plan, each=each, links=links, state=options.get("state"))


def _parse_common(function: str, known: type, options: Mapping[str, Any]) -> tuple[ItemOptions, Filter]:
    """Return the options for every item, and the filter of names; TypeError for an option that is not `known`."""
    check_keywords(function, known, options)
    names = Filter.of(options.get("exclude"), options.get("include"))
    each = ItemOptions(
        metadata=ObjectMetadata.of(options) or None,
        encryption=ObjectEncryption.of(options),
        gzip=options.get("gzip", False),
        packed=options.get("packed", False),
        no_clobber=options.get("no_clobber", False),
        generation=options.get("generation"),
        verify_source=options.get("verify_source", False),
        preserve_posix=options.get("preserve_posix", False),
    )
    return each, names


def _check_for_new(each: ItemOptions, target: str) -> None:
    if is_cloud(target):
        return
    if each.encryption.encrypts:
        name = "encryption_key" if each.encryption.key is not None else "kms_key"
        cure = "use `decryption_keys`" if each.encryption.key is not None else "leave it out"
        raise ValueError(f"`{name}` is for targets in the cloud, got {target}; {cure}")
    if each.metadata is not None:
        name = next(name for name, value in each.metadata.options().items() if value)
        raise ValueError(f"`{name}` is for targets in the cloud, got {target}; leave it out")


def _check_packing(each: ItemOptions, source: str, target: str) -> None:
    encoding = None if each.metadata is None else each.metadata.content_encoding
    if each.gzip and (is_cloud(source) or not is_cloud(target)):
        raise ValueError(f"`gzip` is for uploads, got {source} to {target}; leave it out")
    if each.verify_source and (is_cloud(source) or not is_cloud(target)):
        raise ValueError(f"`verify_source` is for uploads, got {source} to {target}; leave it out")
    if each.preserve_posix and (is_cloud(source) == is_cloud(target) or STREAM in (source, target)):
        raise ValueError(f"`preserve_posix` is for files to and from the cloud, got {source} to {target}; leave it out")
    if each.gzip and encoding not in (None, "gzip"):
        raise ValueError(f"`content_encoding` must be gzip or None with `gzip`, got {encoding!r}; leave it out")
    if each.packed and (not is_cloud(source) or is_cloud(target)):
        raise ValueError(f"`packed` is for downloads, got {source} to {target}; leave it out")


def _overlap(one: Url, other: Url) -> bool:
    return one.bucket == other.bucket and (one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix))
