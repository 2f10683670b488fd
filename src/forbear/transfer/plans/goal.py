"""Targets: where copies go, and which name each has there. It knows no source, and writes nothing."""

import os
import sys
from dataclasses import dataclass, replace

from forbear.transfer.cloud.address import Url, is_cloud
from forbear.transfer.errors import TransferError, UnsafeName
from forbear.transfer.items import Action, Item
from forbear.transfer.plans.names import object_name, relative_path


@dataclass(frozen=True, slots=True)
class Goal:
    """Where copies go: `at` is an address in the cloud, a path, or "-"; `folder` is whether they go below it.

    `root` is the folder that the user named, where `at` is one below it.
    """

    at: Url | str
    folder: bool
    root: str | None = None

    def below(self, name: str) -> "Goal":
        """The folder of that name in this folder; the folder itself if it is empty. Raises UnsafeName."""
        if not name:
            return Goal(self.at, folder=True)
        if isinstance(self.at, Url):
            return Goal(Url(self.at.bucket, f"{prefix(self.at)}{name}/"), folder=True)
        return Goal(os.path.join(self.at, relative_path(name)), folder=True, root=self.root or self.at)

    def take(self, item: Item, name: str) -> Item:
        """The item with a target of that name in this folder; a refused one where it can have none."""
        try:
            if isinstance(self.at, Url):
                key = f"{prefix(self.at)}{name}"
                target = Url(self.at.bucket, key if isinstance(item.source, Url) else object_name(key))
                item = replace(item, target=target)
                return refused(item, "source and target are the same") if target == item.source else item
            return replace(item, target=os.path.join(self.at, relative_path(name)), root=self.root or self.at)
        except UnsafeName as error:
            return refused(item, error)


class Doubles:
    """Notices names that are one on a disk that takes capitals for small letters; on others it keeps none."""

    def __init__(self, goal: Goal) -> None:
        self._seen: dict[str, str] | None = {} if not isinstance(goal.at, Url) and is_case_blind(goal.at) else None

    def other(self, name: str) -> str | None:
        """See a name; returns an earlier one that is the same on disk."""
        if self._seen is None:
            return None
        first = self._seen.setdefault(name.casefold(), name)
        return None if first == name else first


def refused(item: Item, reason: str | Exception) -> Item:
    """The item as one that cannot be done."""
    hint = reason.hint if isinstance(reason, TransferError) else item.hint
    return replace(item, action=Action.REFUSE, note=str(reason) or type(reason).__name__, hint=hint)


def prefix(url: Url) -> str:
    """What the names of all objects in a folder begin with."""
    return url.name if not url.name or url.name.endswith("/") else f"{url.name}/"


def names_folder(target: str) -> bool:
    """Whether a target is a folder as it is written, or by what is on disk."""
    if is_cloud(target):
        name = Url.parse(target).name
        return not name or name.endswith("/")
    return target.endswith(("/", os.sep)) or os.path.isdir(target)


def is_case_blind(folder: str) -> bool:
    """Whether the disk that a folder is on, or will be, takes capitals for small letters."""
    path = os.path.abspath(folder)
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    other = path.swapcase()
    if other == path:
        return sys.platform in {"win32", "darwin"}
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False
