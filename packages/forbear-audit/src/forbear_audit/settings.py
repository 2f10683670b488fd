"""`AuditSettings`: the rules that count and the files to read, by arguments or `[tool.forbear.audit]`."""

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from forbear.adapters import is_list, shown_value
from forbear.cli.kit.links import real
from forbear_audit.findings import Severity, place_in
from forbear_audit.reading.sources import read_regular
from forbear_audit.rules.catalog import DEFAULT_RULES, RULES

_KEYS = ("select", "ignore", "exclude", "per-file-ignores", "baseline", "fail-on")
_TABLE = "tool.forbear.audit"
_LARGEST_SETTINGS = 1_000_000  # bytes of pyproject.toml
_KEY_PARTS = 32  # tomllib would need long for more
_LONG_KEY = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_KEY_PARTS}}}")
_VALUES = re.compile(  # comments and texts: each quote begins one, closed or not, so that none is looked at twice
    r"""(?xs) \#[^\n]*+ | \"{3} (?: [^"\\] | \\. | "(?!"") )*+ (?:\"{3})? | '{3} (?: [^'] | '(?!'') )*+ (?:'{3})?
    | " (?: [^"\\\n] | \\. )*+ "? | '[^'\n]*+ '?"""
)


@dataclass(frozen=True)
class AuditSettings:
    """Which rules count, and which files are read.

    `select` are the ids of the rules that count, by default DEFAULT_RULES; `ignore` takes some away. `exclude` are
    patterns of files and folders that are not read. `per_file_ignores` ignores rules in files that match a pattern.

    Patterns count from the folder `root`, by default the current one: folders above it never match. A pattern matches
    the last parts of a path; `*` stands for a part of a name and `**` for any number of folders. A pattern in `exclude`
    also leaves out what is below a folder that it matches. One that begins with `/` is absolute.

    Raises ValueError for an unknown rule, and for a pattern without a name.

    >>> AuditSettings(ignore=("NO-JITTER",), exclude=("vendored",)).ignore
    ('NO-JITTER',)
    """

    select: tuple[str, ...] = DEFAULT_RULES
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    baseline: str | None = None
    fail_on: Severity | Literal["never"] = "warning"
    root: Path | None = None

    def __post_init__(self) -> None:
        check_rules("select", self.select)
        check_rules("ignore", self.ignore)
        check_patterns("exclude", self.exclude)
        check_patterns("per_file_ignores", self.per_file_ignores)
        for rules in self.per_file_ignores.values():
            check_rules("per_file_ignores", rules)
        _check_fail_on("fail_on", self.fail_on)

    def counts(self, rule: str, path: Path) -> bool:
        """Return whether a rule counts in a file."""
        if rule not in self.select or rule in self.ignore:
            return False
        patterns = [pattern for pattern, rules in self.per_file_ignores.items() if rule in rules]
        return not patterns or not any(_fits(self._place(path), pattern, self._folder) for pattern in patterns)

    def excludes(self, path: Path) -> bool:
        """Return whether a file or folder is left out, by itself or with a folder of the project around it."""
        if not self.exclude:
            return False
        place = self._place(path)
        # Elsewhere only the file or folder itself counts: what stands above it is not part of the project.
        places = [place] if place.is_absolute() else [place, *place.parents][:-1]
        return any(_fits(one, pattern, self._folder) for pattern in self.exclude for one in places)

    @property
    def _folder(self) -> Path:
        return real(self.root or Path())

    def _place(self, path: Path) -> Path:
        return place_in(path, self._folder)


def _fits(place: Path, pattern: str, folder: Path) -> bool:
    """Return whether the last parts of a path match a pattern; all parts, from `folder`, if it begins with "/"."""
    if pattern.startswith("/"):
        return _match(Path(folder, place).parts[1:], _parts(pattern))
    return _match(place.parts, ("**", *_parts(pattern)))


@cache
def _parts(pattern: str) -> tuple[str, ...]:
    return tuple(part for part in pattern.split("/") if part not in ("", "."))


def _match(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Return whether all names match all parts of a pattern, in time that grows with the product of their numbers."""
    matched = {0}  # the numbers of names that the parts so far can match
    for part in wanted:
        if part == "**":
            matched = set(range(min(matched), len(names) + 1))
        else:
            matched = {at + 1 for at in matched if at < len(names) and fnmatchcase(names[at], part)}
        if not matched:
            return False
    return len(names) in matched


def check_patterns(name: str, patterns: Collection[str]) -> None:
    """Raise ValueError that names the parameter if a pattern names no file or folder."""
    for pattern in patterns:
        if all(part == "**" for part in _parts(pattern)):
            rule = 'patterns that name files or folders, such as "tests/*.py"'
            raise ValueError(f"`{name}` must have {rule}, got {shown_value(pattern)}")


def _check_fail_on(name: str, value: object) -> None:
    if value not in ("note", "warning", "error", "never"):
        raise ValueError(f"`{name}` must be note, warning, error or never, got {shown_value(value)}")


def check_rules(name: str, rules: Collection[str]) -> tuple[str, ...]:
    """Return ids of rules; raises ValueError that names the parameter if one is unknown."""
    for rule in rules:
        if rule not in RULES:
            raise ValueError(f"`{name}` must have ids of rules ({', '.join(RULES)}), got {shown_value(rule)}")
    return tuple(rules)


def read_settings(folder: Path) -> AuditSettings:
    """Return the settings of the nearest pyproject.toml at or above a folder; the defaults without one.

    Raises ValueError that names the file for a file that is not valid TOML, for unknown keys, and for wrong values.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            try:
                return _from_table(_table(_parse(file)), place)
            except OSError as error:
                raise ValueError(f"{file}: {error.strerror}") from None
            except RecursionError:
                raise ValueError(f"{file}: its values are nested too deeply") from None
            except ValueError as error:
                too_long = "integer string conversion" in str(error)
                raise ValueError(f"{file}: {'a number has too many digits' if too_long else error}") from None
    return AuditSettings()


def _parse(file: Path) -> dict[str, Any]:
    """Return a pyproject.toml as a document; the audited code may have written it."""
    text = read_regular(file, _LARGEST_SETTINGS).decode("utf-8")
    if _LONG_KEY.search(_VALUES.sub("_", text)):
        raise ValueError(f"a key must have at most {_KEY_PARTS} parts with dots between them")
    return tomllib.loads(text)


def _table(document: dict[str, Any]) -> dict[str, Any]:
    """Return the table `tool.forbear.audit` of a document, empty if there is none."""
    table, path = document, ""
    for name in ("tool", "forbear", "audit"):
        path = f"{path}.{name}" if path else name
        table = _mapping(path, table.get(name, {}))
    return table


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` must be a table, got {shown_value(value)}")
    return cast("dict[str, Any]", value)


def _from_table(options: dict[str, Any], place: Path) -> AuditSettings:
    """Return the settings in a table; errors name the whole key, which is no option of a command."""
    unknown = [key for key in options if key not in _KEYS]
    if unknown:
        raise ValueError(f"the keys of `{_TABLE}` are {', '.join(_KEYS)}, got {shown_value(unknown[0])}")
    changes: dict[str, Any] = {key.replace("-", "_"): value for key, value in options.items()}
    for key, value in options.items():
        name = f"{_TABLE}.{key}"
        match key:
            case "fail-on":
                _check_fail_on(name, value)
            case "select" | "ignore":
                texts = _texts(name, value)
                every = key == "select" and texts == ("all",)
                changes[key] = tuple(RULES) if every else check_rules(name, texts)
            case "exclude":
                changes[key] = _texts(name, value)
                check_patterns(name, changes[key])
            case "per-file-ignores":
                pairs = _mapping(name, value)
                check_patterns(name, pairs)
                ignored = {pattern: check_rules(name, _texts(name, rules)) for pattern, rules in pairs.items()}
                changes["per_file_ignores"] = ignored
            case _:
                if not isinstance(value, str) or not value:
                    raise ValueError(f"`{name}` must be the name of a file, got {shown_value(value)}")
                changes["baseline"] = str(place / value)
    return AuditSettings(root=place, **changes)


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if not is_list(value) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"`{name}` must be a list of texts, got {shown_value(value)}")
    return tuple(value)
