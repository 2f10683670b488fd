"""Scenarios: what a file or an option may say, and the one line that a wrong one gets."""

import json
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from forbear.core.backoff import Exponential
from forbear.simulate.fields import ScenarioError, rules
from forbear.simulate.reading import read_file, read_mapping
from forbear.simulate.scenario import Clients, RateChange, Scenario, Server, Window

TOML = """
duration = "10m"
step = "200ms"
windows = [{ kind = "refuse", start = "1m", length = "30s" }, { kind = "slow", start = "2m", factor = 2.5 }]

[clients]
rate = "6000/m"
attempt_timeout = "1m30s"
changes = [{ start = "10s", rate = "200/s", length = "5s" }]
policy = { name = "iam", attempts = 3, timeout = "none", maximum = "20s", jitter = "full" }

[service]
workers = 20
queue = "none"
time = "50ms"
"""


def test_a_file_says_all_with_units(tmp_path: Path) -> None:
    """Texts with units become seconds and calls per second, lists of tables become sections."""
    file = tmp_path / "fleet.toml"
    file.write_text(TOML)
    scenario = read_file(file, ["service.workers=40", "clients.policy.attempts=4"])
    assert (scenario.duration, scenario.step, scenario.bins) == (600, 0.2, 3000)
    assert scenario.service == Server(workers=40, queue=None, time=0.05)
    assert scenario.windows == (Window("refuse", 60, 30), Window("slow", 120, 60, 2.5))
    clients = scenario.clients
    assert (clients.rate, clients.attempt_timeout) == (100, 90)
    assert clients.changes == (RateChange(10, 200, 5),)
    assert (clients.limits.attempts, clients.limits.timeout) == (4, None)
    assert clients.policy.backoff == Exponential(2, 2, 20, "full")


def test_json_says_the_same(tmp_path: Path) -> None:
    """A .json file is read as JSON; an empty table is the default scenario."""
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps({"clients": {"count": 7}}))
    assert read_file(file) == Scenario(clients=Clients(count=7))
    assert read_mapping({}) == Scenario()


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"durtion": "1s"}, "`durtion`", "'1s'", "did you mean duration?"),
    ({"service": {"time": 50}}, "`service.time`", "50", '"50ms"'),
    ({"service": {"time": "50"}}, "`service.time`", "'50'", '"50ms"'),
    ({"service": {"time": "0s"}}, "`service.time`", "0.0", '"50ms"'),
    ({"service": {"workers": 0}}, "`service.workers`", "0", "1 or more"),
    ({"service": {"workers": 1.5}}, "`service.workers`", "1.5", "1 or more"),
    ({"service": {"workers": True}}, "`service.workers`", "True", "1 or more"),
    ({"service": {"failure": 1.1}}, "`service.failure`", "1.1", "0.05 for 5 %"),
    ({"service": 5}, "`service`", "5", "[service]"),
    ({"clients": {"rate": 100}}, "`clients.rate`", "100", '"100/s"'),
    ({"clients": {"rate": "100ms"}}, "`clients.rate`", "'100ms'", '"100/s"'),
    ({"clients": {"policy": "nope"}}, "`clients.policy`", "'nope'", "interactive"),
    ({"clients": {"policy": {"attempt": 3}}}, "`clients.policy.attempt`", "3", "did you mean attempts?"),
    ({"clients": {"policy": {"timeout": 3}}}, "`clients.policy.timeout`", "3", "correct the value"),
    ({"clients": {"policy": {"attempts": 0}}}, "`clients.policy`", "0", "change that value"),
    ({"clients": {"policy": {"jitter": "some"}}}, "`clients.policy`", "'some'", "change that value"),
    ({"clients": {"arrivals": "herd", "changes": [{}]}}, "`clients.changes`", "1", "remove the changes"),
    ({"windows": {}}, "`windows`", "{}", "[[windows]]"),
    ({"windows": [{}, {"kind": "x"}]}, "`windows[1].kind`", "'x'", "write 'refuse'"),
    ({"windows": [{}, {"start": "59s"}]}, "`windows.start`", "59.0", "without overlap"),
    ({"windows": [{"kind": "drop"}]}, "`clients.attempt_timeout`", "None", "set it"),
    ({"step": "1h"}, "`step`", "3600.0", "a smaller step"),
    ({"step": "1us"}, "`step`", "1e-06", "a larger step"),
]


@pytest.mark.parametrize(("document", "key", "value", "cure"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_values_get_one_line(document: dict[str, Any], key: str, value: str, cure: str) -> None:
    """The line has the key, the value and the cure."""
    with pytest.raises(ScenarioError) as caught:
        read_mapping(document)
    text = str(caught.value)
    assert key in text
    assert f"got {value}" in text
    assert cure in text
    assert "\n" not in text


@pytest.mark.parametrize("option", ["workers", "a.b.c.d=1", "windows.start=1s"])
def test_wrong_options_get_one_line(option: str) -> None:
    """An option without a value, too deep, or into a list is refused."""
    with pytest.raises(ScenarioError, match=r"write it as service.workers=20|change the list in the file"):
        read_mapping({"windows": [{}]}, [option])


@pytest.mark.parametrize(("name", "content"), [("a.toml", "x ="), ("a.json", "{"), ("b.toml", "x = '\xff'")])
def test_a_broken_file_gets_one_line(tmp_path: Path, name: str, content: str) -> None:
    """A file that is no TOML or JSON is named, with the place."""
    file = tmp_path / name
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ScenarioError, match=rf"{name} must be (TOML|JSON)"):
        read_file(file)


def test_python_values_are_checked_too() -> None:
    """The sections check what a program passes, are frozen, and document every field with its unit."""
    with pytest.raises(ScenarioError, match=r"`service.time` must be more than zero seconds, got -1"):
        Server(time=-1)
    with pytest.raises(ScenarioError, match=r"`clients.policy` must be a forbear.Policy"):
        Clients(policy=3)  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        Server().workers = 3  # type: ignore[misc]
    for section in (Scenario, Clients, RateChange, Server, Window):
        assert all(rule.unit and rule.text for rule in rules(section).values())
