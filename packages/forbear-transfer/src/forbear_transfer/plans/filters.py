"""Which names a command leaves out, by the regular expressions of `exclude` and `include`."""

import re
from collections.abc import Sequence
from typing import Self

from forbear.adapters import dataclass

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
