"""The arguments of cp and rsync: their options as keywords, and the checked values that the plans work with."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypedDict, Unpack

from forbear_transfer.encryption import DEFAULT_ENCRYPTION, KeyOptions, NewObjectOptions, ObjectEncryption
from forbear_transfer.errors import StrPath
from forbear_transfer.items import STREAM, Item
from forbear_transfer.metadata import ObjectMetadata, check_keywords
from forbear_transfer.objects import Url, check_scheme, is_cloud
from forbear_transfer.plans.matches import is_wild
from forbear_transfer.plans.targets import names_folder
from forbear_transfer.progress import Listener


class CopyOptions(NewObjectOptions, KeyOptions, total=False):
    """The keyword options for new objects, and for the keys of existing ones."""


class PlanOptions(CopyOptions, total=False):
    """The keyword options of `plan`; the docstring of `cp` describes them."""

    generation: int | None
    recursive: bool
    no_clobber: bool
    exclude: str | Sequence[str] | None
    include: str | Sequence[str] | None
    gzip: bool
    packed: bool


class RunOptions(TypedDict, total=False):
    """The keyword options that `cp` and `rsync` share; their docstrings describe them."""

    manifest: StrPath | None
    on_event: Listener | None
    parallel: int | None
    state: StrPath | None


class CpOptions(PlanOptions, RunOptions, total=False):
    """The keyword options of `cp`, whose docstring describes them."""

    dry_run: bool


class RsyncOptions(RunOptions, CopyOptions, total=False):
    """The keyword options of `rsync`, whose docstring describes them."""

    recursive: bool
    delete: bool
    checksum: bool
    size_only: bool
    update: bool
    max_delete: int | None
    exclude: str | Sequence[str] | None
    include: str | Sequence[str] | None
    dry_run: bool
    gzip: bool
    packed: bool


Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arguments:
    """The checked arguments that cp and rsync share, with `exclude` and `include` as compiled patterns.

    `metadata` is what new objects get, None for nothing in particular. `encryption` has the keys.
    """

    target: str
    recursive: bool = False
    exclude: Patterns = ()
    include: Patterns = ()
    dry_run: bool = False
    manifest: StrPath | None = None
    on_event: Listener | None = None
    parallel: int | None = None
    state: StrPath | None = None
    metadata: ObjectMetadata | None = None
    gzip: bool = False
    packed: bool = False
    encryption: ObjectEncryption = DEFAULT_ENCRYPTION

    def changed(self, item: Item) -> Item:
        """Return the item with the options that are for every item."""
        if self.metadata is None and not self.gzip and not self.packed and not self.encryption:
            return item
        encryption = self.encryption or None
        return replace(item, metadata=self.metadata, gzip=self.gzip, decode=not self.packed, encryption=encryption)

    def excludes(self, name: str) -> bool:
        """Return whether `name` is left out: a pattern of `exclude` matches its beginning, or none of `include` does.

        Without patterns nothing is left out. `name` is the name of a file or object below the source folder, or that of
        the source itself.
        """
        return is_left_out(name, self.exclude, self.include)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpArguments(_Arguments):
    """The checked arguments of `cp`."""

    sources: tuple[str, ...]
    no_clobber: bool = False
    generation: int | None = None

    @classmethod
    def of(cls, sources: StrPath | Sequence[StrPath], target: StrPath, **options: Unpack[CpOptions]) -> Self:
        """Return the arguments of `cp`, checked; ValueError if they make no sense, TypeError for an unknown option."""
        paths = (sources,) if isinstance(sources, str | os.PathLike) else sources
        names = tuple(os.fspath(source) for source in paths)
        arguments = cls(sources=names, target=os.fspath(target), **_checked("cp", CpOptions, options))
        arguments._check()
        return arguments

    def _check(self) -> None:
        if not self.sources or not all(self.sources):
            raise ValueError("`sources` must name at least one file, folder or object, and none may be empty; name one")
        if not self.target:
            raise ValueError(
                "`target` must name a file, a folder or an address in the cloud, got nothing; for this folder write ."
            )
        if self.dry_run and self.manifest is not None:
            raise ValueError("`manifest` does not go with `dry_run`, which records nothing; leave one of them out")
        if self.generation is not None:
            self._check_required_generation(self.generation)
        _check_for_new(self.metadata, self.encryption, self.target)
        for source in self.sources:
            _check_packing(self, source, self.target)
        for source in self.sources:
            check_scheme("sources", source)
        check_scheme("target", self.target)
        local = [source for source in self.sources if not _is_valid_cloud(source)]
        for source in self.sources:
            check_generation("sources", source)
        if not _is_cloud_target(self.target):
            if local:
                raise ValueError(
                    f"the source or the target must begin with gs://, got {local[0]} and {self.target}; "
                    "copy files with cp -r"
                )
            if self.target == STREAM and (self.several or self.recursive):
                raise ValueError("standard output (-) as `target` takes a single object")
        if STREAM in self.sources and (len(self.sources) > 1 or names_folder(self.target)):
            raise ValueError("standard input (-) must be the only source, and `target` must name the object")

    def _check_required_generation(self, generation: int) -> None:
        if generation < 0:
            raise ValueError(f"`generation` must be 0 (no object) or the number of a version, got {generation}")
        if not is_cloud(self.target):
            raise ValueError(f"`generation` is for targets in the cloud, got {self.target}; leave it out")
        if self.several or self.recursive:
            raise ValueError("`generation` is for a single file or object; copy the others by themselves")
        if self.no_clobber:
            raise ValueError("`generation` does not go with `no_clobber`; leave one of them out")

    @property
    def several(self) -> bool:
        """True if there may be more than one source: several are given, or one with wildcards.

        A path of a file that exists here counts as one source, even if it has wildcard characters.
        """
        return len(self.sources) > 1 or any(is_wild(source) for source in self.sources if not _exists_here(source))

    @property
    def may_collide(self) -> bool:
        """True if two files may get the same name: with several sources, or with a pattern that spans folders.

        Such a pattern has a wildcard in a part before the last, or `**` in the last part.
        """
        if not self.several:
            return False
        if len(self.sources) > 1:
            return True
        source = "".join(self.sources)
        above, _, last = (Url.parse(source).name if is_cloud(source) else source.replace(os.sep, "/")).rpartition("/")
        return is_wild(above) or "**" in last

    @property
    def depends(self) -> bool:
        """True if the names at the target depend on what exists there, so that a second run might choose others.

        That is so with `recursive`, a single source, and a target that is no bucket and has no slash at its end.
        """
        is_folder = names_folder(self.target) if is_cloud(self.target) else self.target.endswith(("/", os.sep))
        return self.recursive and not self.several and not is_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncArguments(_Arguments):
    """The checked arguments of `rsync`."""

    source: str
    delete: bool = False
    checksum: bool = False
    size_only: bool = False
    update: bool = False
    max_delete: int | None = None

    @classmethod
    def of(cls, source: StrPath, target: StrPath, **options: Unpack[RsyncOptions]) -> Self:
        """Return the arguments of `rsync`, checked.

        ValueError if they make no sense, TypeError for an unknown option.
        """
        source, target = os.fspath(source), os.fspath(target)
        arguments = cls(source=source, target=target, **_checked("rsync", RsyncOptions, options))
        if not source or not target:
            raise ValueError("`source` and `target` must each name a folder, got nothing; for this folder write .")
        check_scheme("source", source)
        check_scheme("target", target)
        if arguments.checksum and arguments.size_only:
            raise ValueError("`checksum` does not go with `size_only`; leave one of them out")
        if arguments.max_delete is not None and arguments.max_delete < 0:
            raise ValueError(f"`max_delete` must be 0 or more, got {arguments.max_delete}")
        if arguments.max_delete is not None and not arguments.delete:
            raise ValueError("`max_delete` is for `delete`; use both, or none")
        _check_for_new(arguments.metadata, arguments.encryption, target)
        _check_packing(arguments, source, target)
        both = _is_valid_cloud(source), _is_cloud_target(target)
        if both[0] and Url.parse(source).generation is not None:
            raise ValueError(f"`source` must be a folder, which has no generations, got {source}; leave the number out")
        if not any(both):
            raise ValueError(
                f"the source or the target must begin with gs://, got {source} and {target}; copy files with rsync"
            )
        if all(both):
            one, other = Url.parse(source), Url.parse(target)
            if one.bucket == other.bucket and _overlap(one.prefix, other.prefix):
                raise ValueError(
                    f"`source` and `target` must not lie in each other, got {source} and {target}; name another target"
                )
        return arguments


def _checked(function: str, options: type, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords, with compiled patterns, all options for metadata as `metadata`, and keys as `encryption`.

    TypeError for a keyword that is no key of the TypedDict `options`. ValueError if `parallel` is below 1 or a
    pattern is no regular expression, and for metadata or keys that cannot be set.
    """
    check_keywords(function, options, keywords)
    parallel = keywords.get("parallel")
    if parallel is not None and parallel < 1:
        raise ValueError(f"`parallel` must be at least 1, got {parallel}")
    patterns = {name: compiled_patterns(name, keywords.get(name)) for name in ("exclude", "include")}
    others = {name: value for name, value in keywords.items() if name not in CopyOptions.__annotations__}
    encryption = ObjectEncryption.of(keywords)
    return {**others, **patterns, "metadata": ObjectMetadata.of(keywords) or None, "encryption": encryption}


def compiled_patterns(name: str, texts: str | Sequence[str] | None) -> Patterns:
    """Return the patterns in the option `name`; ValueError for one that is no regular expression."""
    patterns: list[re.Pattern[str]] = []
    for text in (texts,) if isinstance(texts, str) else texts or ():
        try:
            patterns.append(re.compile(text))
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(
                f"`{name}` must be a regular expression, got {text!r}: {error}; write a backslash before a character "
                "that stands for itself"
            ) from error
    return tuple(patterns)


def is_left_out(name: str, exclude: Patterns, include: Patterns) -> bool:
    """Return whether a pattern of `exclude` matches the beginning of `name`, or `include` has some and none does."""
    if any(pattern.match(name) for pattern in exclude):
        return True
    return bool(include) and not any(pattern.match(name) for pattern in include)


def _check_for_new(metadata: ObjectMetadata | None, encryption: ObjectEncryption, target: str) -> None:
    """Raise ValueError for metadata or a key of new objects if the target is not in the cloud."""
    if is_cloud(target):
        return
    if encryption.encrypts:
        name = "encryption_key" if encryption.key is not None else "kms_key"
        cure = "use `decryption_keys`" if encryption.key is not None else "leave it out"
        raise ValueError(f"`{name}` is for targets in the cloud, got {target}; {cure}")
    if metadata is not None:
        name = next(name for name, value in metadata.options().items() if value)
        raise ValueError(f"`{name}` is for targets in the cloud, got {target}; leave it out")


def _check_packing(arguments: _Arguments, source: str, target: str) -> None:
    """Raise ValueError for `gzip` with anything but an upload, and for `packed` with anything but a download."""
    encoding = None if arguments.metadata is None else arguments.metadata.content_encoding
    if arguments.gzip and (is_cloud(source) or not is_cloud(target)):
        raise ValueError(f"`gzip` is for uploads, got {source} to {target}; leave it out")
    if arguments.gzip and encoding not in (None, "gzip"):
        raise ValueError(f"`content_encoding` must be gzip or None with `gzip`, got {encoding!r}; leave it out")
    if arguments.packed and (not is_cloud(source) or is_cloud(target)):
        raise ValueError(f"`packed` is for downloads, got {source} to {target}; leave it out")


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _is_valid_cloud(source: str) -> bool:
    """Return whether a source is in the cloud (it begins with gs://); ValueError if its address is wrong."""
    return is_cloud(source) and bool(Url.parse(source))


def _is_cloud_target(target: str) -> bool:
    if is_cloud(target) and Url.parse(target).generation is not None:
        raise ValueError(
            f"`target` cannot name a generation, for each write makes a new one, got {target}; leave the number out"
        )
    return is_cloud(target)


def check_generation(parameter: str, address: str) -> None:
    """Raise ValueError, which names `parameter`, for a pattern or a folder in the cloud with a generation."""
    url = Url.parse(address) if is_cloud(address) else None
    if url is not None and url.generation is not None and (is_wild(url.name) or url.name.endswith("/")):
        raise ValueError(f"`{parameter}` must be an object if it has a generation, got {address}; leave the number out")


def _exists_here(source: str) -> bool:
    return not is_cloud(source) and os.path.lexists(source)
