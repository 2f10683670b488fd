"""Arguments of cp and rsync, checked before anything is sent: ValueError where they make no sense."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from forbear.transfer.files import StrPath
from forbear.transfer.items import STREAM
from forbear.transfer.objects import Url, is_cloud
from forbear.transfer.plans.targets import names_folder
from forbear.transfer.plans.wildcards import is_wild


@dataclass(frozen=True, slots=True)
class CpArguments:
    """What is to be copied where; see `cp`."""

    sources: tuple[str, ...]
    target: str
    recursive: bool = False
    no_clobber: bool = False
    exclude: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls,
        sources: StrPath | Sequence[StrPath],
        target: StrPath,
        *,
        recursive: bool,
        no_clobber: bool,
        exclude: str | None,
    ) -> Self:
        """Check what was asked for; TypeError and ValueError name the parameter."""
        named = (sources,) if isinstance(sources, str | os.PathLike) else sources
        paths = tuple(os.fspath(source) for source in named)
        asked = cls(paths, os.fspath(target), recursive, no_clobber, _pattern(exclude))
        asked._check()
        return asked

    def _check(self) -> None:
        if not self.sources or not all(self.sources):
            raise ValueError("`sources` must name at least one file, folder or object, and none may be empty")
        if not self.target:
            raise ValueError("`target` must name a file, a folder or an address in the cloud, got nothing")
        here = [source for source in self.sources if not _parsed(source)]
        for source in self.sources:
            _check_version(source)
        if not _parsed_target(self.target):
            if here:
                raise ValueError(f"the source or the target must begin with gs://: to copy {here[0]} here, use cp")
            if self.target == STREAM and (self.several or self.recursive):
                raise ValueError("standard output (-) as `target` takes a single object")
        if STREAM in self.sources and (len(self.sources) > 1 or names_folder(self.target)):
            raise ValueError("standard input (-) must be the only source, and `target` must name the object")

    def leaves_out(self, name: str) -> bool:
        """Whether a name, below the folder that was asked for, is excluded."""
        return self.exclude is not None and self.exclude.match(name) is not None

    @property
    def several(self) -> bool:
        """Whether there may be more than one source."""
        return len(self.sources) > 1 or any(is_wild(source) for source in self.sources if not _is_here(source))

    @property
    def may_collide(self) -> bool:
        """Whether two files may have the same last part: of several sources, or of a pattern that spans folders."""
        if not self.several:
            return False
        if len(self.sources) > 1:
            return True
        source = "".join(self.sources)
        above, _, last = (Url.parse(source).name if is_cloud(source) else source.replace(os.sep, "/")).rpartition("/")
        return is_wild(above) or "**" in last

    @property
    def depends(self) -> bool:
        """Whether what is at the target decides on names, so that a second run might decide otherwise."""
        written = names_folder(self.target) if is_cloud(self.target) else self.target.endswith(("/", os.sep))
        return self.recursive and not self.several and not written


@dataclass(frozen=True, slots=True)
class RsyncArguments:
    """What is to be made the same; see `rsync`."""

    source: str
    target: str
    recursive: bool = False
    delete: bool = False
    checksum: bool = False
    exclude: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls, source: StrPath, target: StrPath, *, recursive: bool, delete: bool, checksum: bool, exclude: str | None
    ) -> Self:
        """Check what was asked for; ValueError names the parameter."""
        source, target = os.fspath(source), os.fspath(target)
        asked = cls(source, target, recursive, delete, checksum, _pattern(exclude))
        if not source or not target:
            raise ValueError("`source` and `target` must each name a folder, got nothing")
        both = _parsed(source), _parsed_target(target)
        if both[0] and Url.parse(source).generation is not None:
            raise ValueError(f"`source` must be a folder, of which there are no generations, got {source}")
        if not any(both):
            raise ValueError(f"the source or the target must begin with gs://: to mirror {source} here, use rsync")
        if all(both):
            one, other = Url.parse(source), Url.parse(target)
            if one.bucket == other.bucket and _overlap(one.prefix, other.prefix):
                raise ValueError(f"`source` and `target` must not lie in each other, got {source} and {target}")
        return asked

    def leaves_out(self, name: str) -> bool:
        """Whether a name, below the folder that was asked for, is excluded."""
        return self.exclude is not None and self.exclude.match(name) is not None


def _overlap(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _parsed(source: str) -> bool:
    """Whether a source is in the cloud; ValueError where its address is wrong."""
    return is_cloud(source) and bool(Url.parse(source))


def _parsed_target(target: str) -> bool:
    if is_cloud(target) and Url.parse(target).generation is not None:
        raise ValueError(f"`target` cannot name a generation, for each write makes a new one, got {target}")
    return is_cloud(target)


def _check_version(source: str) -> None:
    url = Url.parse(source) if is_cloud(source) else None
    if url is not None and url.generation is not None and (is_wild(url.name) or url.name.endswith("/")):
        raise ValueError(f"`sources`: only one object has a generation, a pattern or a folder has none, got {source}")


def _is_here(source: str) -> bool:
    return not is_cloud(source) and os.path.lexists(source)


def _pattern(exclude: str | None) -> re.Pattern[str] | None:
    try:
        return None if exclude is None else re.compile(exclude)
    except re.error as error:
        raise ValueError(f"`exclude` must be a regular expression, got {exclude!r}: {error}") from error
