"""`AuditSettings`: the rules that count and the files to read, by arguments or `[tool.forbear.audit]`."""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from forbear.audit.findings import Severity
from forbear.audit.rules import DEFAULT_RULES, RULES

_KEYS = ("select", "ignore", "exclude", "per-file-ignores", "baseline", "fail-on")
LARGEST = 2_000_000
"""The size in bytes above which a file is not read: its tree may take 500 times as much memory."""
LARGEST_NOTEBOOK = 50_000_000
"""The size in bytes above which a notebook is not read. Most of it are pictures; its code must be below `LARGEST`."""


@dataclass(frozen=True)
class AuditSettings:
    """Which rules count, and which files are read.

    `select` are the ids of the rules that count, by default DEFAULT_RULES; `ignore` takes some away. `exclude` are
    patterns of paths, as in `Path.match`, that are not read. `per_file_ignores` ignores rules in files that match a
    pattern. Raises ValueError for an unknown rule.
    """

    select: tuple[str, ...] = DEFAULT_RULES
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    baseline: str | None = None
    fail_on: Severity | Literal["never"] = "warning"

    def __post_init__(self) -> None:
        checked("select", self.select)
        checked("ignore", self.ignore)
        for rules in self.per_file_ignores.values():
            checked("per_file_ignores", rules)
        if self.fail_on not in ("note", "warning", "error", "never"):
            raise ValueError(f"`fail_on` must be note, warning, error or never, got {self.fail_on!r}")

    def counts(self, rule: str, path: Path) -> bool:
        """Return whether a rule counts in a file."""
        if rule not in self.select or rule in self.ignore:
            return False
        return not any(rule in rules and path.match(pattern) for pattern, rules in self.per_file_ignores.items())

    def excludes(self, path: Path) -> bool:
        """Return whether a file or folder is left out."""
        return any(path.match(pattern) or pattern.rstrip("/") in path.parts for pattern in self.exclude)


def checked(name: str, rules: Collection[str]) -> tuple[str, ...]:
    """Return ids of rules; raises ValueError that names the parameter if one is unknown."""
    for rule in rules:
        if rule not in RULES:
            raise ValueError(f"`{name}` must have ids of rules ({', '.join(RULES)}), got {rule!r}")
    return tuple(rules)


def read_settings(folder: Path) -> AuditSettings:
    """Return the settings of the nearest pyproject.toml at or above a folder; the defaults without one.

    Raises ValueError that names the file for a file that is not valid TOML, for unknown keys, and for wrong values.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            try:
                document: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
                return _from_table(_table(document), place)
            except OSError as error:
                raise ValueError(f"{file}: {error.strerror}") from None
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{file}: [tool.forbear.audit]: {error}") from None
    return AuditSettings()


def _table(document: dict[str, Any]) -> dict[str, Any]:
    """Return the table `tool.forbear.audit` of a document, empty if there is none."""
    table = document
    for name in ("tool", "forbear", "audit"):
        table = _mapping(name, table.get(name, {}))
    return table


def _mapping(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"`{name}` must be a table, got {value!r}")
    return cast("dict[str, Any]", value)


def _from_table(options: dict[str, Any], place: Path) -> AuditSettings:
    unknown = [key for key in options if key not in _KEYS]
    if unknown:
        raise ValueError(f"the keys are {', '.join(_KEYS)}, got {unknown[0]!r}")
    result = AuditSettings(fail_on=options.get("fail-on", "warning"))
    keys = [key for key in ("select", "ignore", "exclude") if key in options]
    lists: dict[str, Any] = {key: _texts(key, options[key]) for key in keys}
    result = replace(result, **lists)
    if "per-file-ignores" in options:
        pairs = _mapping("per-file-ignores", options["per-file-ignores"]).items()
        result = replace(result, per_file_ignores={name: _texts("per-file-ignores", value) for name, value in pairs})
    if "baseline" in options:
        if not isinstance(options["baseline"], str):
            raise ValueError(f"`baseline` must be the name of a file, got {options['baseline']!r}")
        result = replace(result, baseline=str(place / options["baseline"]))
    return result


def _texts(key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
        raise ValueError(f"`{key}` must be a list of texts, got {value!r}")
    return tuple(cast("list[str]", value))
