"""Goal: where copies go, and which name each has there. It knows no source, and writes nothing."""

import os
from dataclasses import dataclass, replace

from forbear.transfer.errors import UnsafeName
from forbear.transfer.items import Item
from forbear.transfer.plans.names import object_name, relative_path
from forbear.transfer.storage.address import Url, is_cloud


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
            return Goal(Url(self.at.bucket, f"{self.at.prefix}{name}/"), folder=True)
        return Goal(os.path.join(self.at, relative_path(name)), folder=True, root=self.root or self.at)

    def take(self, item: Item, name: str) -> Item:
        """The item with a target of that name in this folder; a refused one where it can have none."""
        try:
            if isinstance(self.at, Url):
                key = f"{self.at.prefix}{name}"
                target = Url(self.at.bucket, key if isinstance(item.source, Url) else object_name(key))
                return unless_same(replace(item, target=target))
            return replace(item, target=os.path.join(self.at, relative_path(name)), root=self.root or self.at)
        except UnsafeName as error:
            return item.refused(error)


def unless_same(item: Item) -> Item:
    """Return the item, refused where it would copy an object onto itself."""
    return item.refused("source and target are the same") if item.source == item.target else item


def names_folder(target: str) -> bool:
    """Whether a target is a folder as it is written, or by what is on disk."""
    if is_cloud(target):
        name = Url.parse(target).name
        return not name or name.endswith("/")
    return target.endswith(("/", os.sep)) or os.path.isdir(target)
