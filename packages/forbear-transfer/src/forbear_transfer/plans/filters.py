"""Filters of names, by `exclude` and `include`, and of symbolic links below the sources, by `links`."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Literal, Self, get_args

from forbear.adapters import dataclass
from forbear_transfer.errors import StrPath
from forbear_transfer.progress import warner

LinkRule = Literal["follow", "skip"]
"""Follow all symbolic links, or leave them all out. By default (None) they are followed, with a warning."""

_Texts = str | Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Leaves out a name if a pattern of `exclude` matches its beginning, or if `include` has patterns and none does."""

    exclude: tuple[re.Pattern[str], ...] = ()
    include: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, exclude: _Texts, include: _Texts) -> Self:
        """Return the filter for both options; ValueError, which names the option, for what is no regular expression."""
        return cls(_compile("exclude", exclude), _compile("include", include))

    def leaves_out(self, name: str) -> bool:
        if self.exclude and any(pattern.match(name) for pattern in self.exclude):
            return True
        return bool(self.include) and not any(pattern.match(name) for pattern in self.include)


def _compile(option: str, texts: _Texts) -> tuple[re.Pattern[str], ...]:
    patterns: list[re.Pattern[str]] = []
    for text in (texts,) if isinstance(texts, str) else texts or ():
        try:
            patterns.append(re.compile(text))
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(
                f"`{option}` must be a regular expression, got {text!r}: {error}; write a backslash before a character "
                "that stands for itself"
            ) from error
    return tuple(patterns)


class Links:
    """The treatment of symbolic links in the folders that a run reads, by a rule.

    Without a rule, `warn` is called for the first link that is followed out of its folder. `states` is the folder that
    the run keeps its states in, None for the default one.
    """

    def __init__(
        self, rule: LinkRule | None, warn: Callable[[str], object] | None = None, states: StrPath | None = None
    ) -> None:
        self.states = states
        self.skips = rule == "skip"
        self._warn = warn if rule is None else None

    @classmethod
    def of(cls, rule: LinkRule | None, states: StrPath | None) -> Self:
        """Return the links of a run that begins now, whose progress gets the warning."""
        return cls(rule, warner() if rule is None else None, states)

    def leaves_out(self, folder: str, path: str) -> bool:
        """Return whether the symbolic link `path`, below `folder`, is left out; warn if it is followed out of it."""
        if self._warn is not None:
            above, real = os.path.join(os.path.realpath(folder), ""), os.path.realpath(path)
            if not os.path.join(real, "").startswith(above) and os.path.exists(real):
                text = f"{path} is a symbolic link out of {folder or os.curdir}, to {real}, and is followed"
                self._warn(f"{text}; to leave links out or to follow them without this warning, use `links`")
                self._warn = None
        return self.skips


FOLLOW = Links("follow")
"""All links are followed."""

LEFT_OUT = "a symbolic link"
"""Why a link is left out."""


def check_links(rule: LinkRule | None, *, has_files: bool) -> LinkRule | None:
    """Return the rule for links; ValueError if there is no such rule, or if no source is on this machine."""
    if rule not in (None, *get_args(LinkRule)):
        raise ValueError(f"`links` must be 'follow', 'skip' or None, got {rule!r}; name one of them")
    if rule is not None and not has_files:
        raise ValueError("`links` is for folders on this machine, and no source is one; leave it out")
    return rule
