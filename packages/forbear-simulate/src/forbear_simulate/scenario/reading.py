"""Read a scenario from a TOML or JSON file, a mapping, or options; every error is one line."""

import json
import re
import tomllib
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from forbear.adapters import is_list, is_mapping
from forbear_simulate.scenario.budgets import Throttling, budget_of
from forbear_simulate.scenario.fields import ScenarioError, Section, refuse, rules
from forbear_simulate.scenario.policies import policy_of, refuse_key
from forbear_simulate.scenario.scenario import Clients, Layer, RateChange, Scenario, Server, Window

S = TypeVar("S", bound=Section)

TABLES: dict[str, type[Section]] = {"clients": Clients, "service": Server, "throttle": Throttling}
LISTS: dict[str, type[Section]] = {"windows": Window, "clients.changes": RateChange, "layers": Layer}
_LONGEST = 256 * 1024
_MOST_DOTS = 200
_ITEM = re.compile(r"(\w+)\[([0-9]{1,6})\]", re.ASCII)
_NAMES = {"policy": "name", "budget": "preset"}  # a text for the table is this key of it


def read_file(path: Path, options: Iterable[str] = ()) -> Scenario:
    """Return the scenario of a .json file, or of any other file as TOML, changed by `options` as in `read_mapping`.

    Raises ScenarioError, and OSError if the file cannot be read.

    >>> from pathlib import Path
    >>> size = Path("fleet.toml").write_text("duration = '30s'")
    >>> read_file(Path("fleet.toml"), ["service.workers=20"]).service.workers
    20
    """
    with path.open("rb") as file:
        content = file.read(_LONGEST + 1)
    if len(content) > _LONGEST:
        raise ScenarioError(f"{path} must have at most {_LONGEST >> 10} KiB; name the file of a scenario")
    if any(line.count(b".") > _MOST_DOTS for line in content.splitlines()):  # tomllib takes their square in memory
        raise ScenarioError(f"{path} must have at most {_MOST_DOTS} dots in a line; write long lists on several lines")
    try:
        text = content.decode()
        document: object = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # the errors of both parsers and of decoding are ValueErrors
        form = "JSON" if path.suffix == ".json" else "TOML"
        why = "it has too many levels" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise ScenarioError(f"{path} must be {form}: {why}; correct that place") from None
    return read_mapping(document, options)


def read_mapping(document: Any, options: Iterable[str] = ()) -> Scenario:
    """Return the scenario of nested mappings, with texts for times and rates: {"service": {"time": "50ms"}}.

    Each option is `key=value` and replaces one value, such as "service.workers=20" or "windows[0].length=2m". A list is
    written as in TOML ("windows=[]"). Raises ScenarioError for an unknown key, for a value without its unit, and for an
    impossible value.

    >>> scenario = read_mapping({"duration": "1m", "service": {"workers": 5}}, ["service.time=20ms"])
    >>> scenario.duration, scenario.service.time
    (60.0, 0.02)
    >>> read_mapping({"service": {"time": 20}})
    Traceback (most recent call last):
        ...
    forbear_simulate.ScenarioError: `service.time` must be more than zero seconds, got 20; ...
    """
    return _section(Scenario, _merge(document, options), "")


def _merge(document: Any, options: Iterable[str]) -> dict[str, Any]:
    """Return a copy of a document, changed by options."""
    if not is_mapping(document):
        refuse("scenario", "a table of keys", document, 'write keys such as duration = "10m"')
    try:
        merged: dict[str, Any] = deepcopy(document)
    except RecursionError:
        refuse(
            "scenario", "a table of keys, at most three deep", "a document of many levels", "leave the inner ones out"
        )
    for option in options:
        _set_option(merged, option)
    return merged


def _set_option(document: dict[str, Any], option: str) -> None:
    """Put the value of one `key=value` into the document."""
    key, equals, value = option.partition("=")
    *path, name = key.strip().split(".")
    if not equals or not name or len(path) > 2:
        refuse("option", "a key and a value", option, "write it as service.workers=20")
    table = document
    for part in path:
        if (item := _ITEM.fullmatch(part)) is not None:
            table = _item(table, item[1], int(item[2]), key.strip())
            continue
        if part in _NAMES and isinstance(table.get(part), str):
            table[part] = {_NAMES[part]: table[part]}
        table = table.setdefault(part, {})
        if not is_mapping(table):
            refuse(key.strip(), "a key of a table, not of a list", option, f"write {part}[0].{name} for the first item")
    text = value.strip()
    table[name] = _list(key.strip(), text) if key.strip() in LISTS and text.startswith("[") else text


def _list(key: str, text: str) -> object:
    """Return the list that an option writes as TOML, such as `[]` or `[{ start = "30s", length = "10s" }]`."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return refuse(key, "a list of tables as in TOML", text, "write [] for none")


def _item(table: dict[str, Any], name: str, number: int, key: str) -> dict[str, Any]:
    """Return an item of the list `name`; `key` is that of the option."""
    items: Any = table.get(name)
    if not is_list(items):
        items = []
    if number >= len(items) or not is_mapping(items[number]):
        rule = f"about one of the {len(items)} items of {name}, from {name}[0] on"
        refuse(key, rule, number, "add the item to the file")
    chosen: dict[str, Any] = items[number]
    return chosen


def _section(section: type[S], table: Any, prefix: str) -> S:
    """Return a section made of a table; `prefix` is the key of the table and a dot, empty at the top."""
    if not is_mapping(table):
        refuse(prefix[:-1], "a table of keys", table, f"write [{prefix[:-1]}] and its keys below")
    known = tuple(item.name for item in fields(section))
    rule_of = rules(section)
    values: dict[str, Any] = {}
    for name, raw in table.items():
        key = f"{prefix}{name}"
        if name not in known:
            refuse_key(key, raw, known)
        if name in rule_of:
            values[name] = rule_of[name].read(key, raw)
            rule_of[name].check(key, values[name])
        elif name == "policy":
            values[name] = policy_of(key, raw)
        elif name == "budget":
            values[name] = budget_of(key, raw)
        elif key in TABLES:
            values[name] = _section(TABLES[key], raw, f"{key}.")
        else:
            if not is_list(raw):
                refuse(key, "a list of tables", raw, f"write [[{key}]] above each one in a file, and [] for none")
            values[name] = tuple(_section(LISTS[key], item, f"{key}[{n}].") for n, item in enumerate(raw))
    return section(**values)
