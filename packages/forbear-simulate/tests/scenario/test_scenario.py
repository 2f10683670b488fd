"""Scenarios: what a file or an option may say, and the one line that a wrong one gets."""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

from forbear.core.admission import ActiveShare, ClientThrottle
from forbear.core.backoff import Exponential
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy, retry
from forbear.run.budget import Budget
from forbear.shared_budget.budget import SharedBudget
from forbear_simulate.scenario.budgets import ClientBudget, SharedBucket, Throttling
from forbear_simulate.scenario.fields import ScenarioError, rules
from forbear_simulate.scenario.reading import read_file, read_mapping
from forbear_simulate.scenario.scenario import Clients, Layer, RateChange, Scenario, Server, Window

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
    assert (clients.policy.limits.attempts, clients.policy.limits.timeout) == (4, None)
    assert clients.policy.backoff == Exponential(2, 2, 20, "full")


def test_json_says_the_same(tmp_path: Path) -> None:
    """A .json file is read as JSON; an empty table is the default scenario."""
    file = tmp_path / "fleet.json"
    file.write_text(json.dumps({"clients": {"count": 7}}))
    assert read_file(file) == Scenario(clients=Clients(count=7))
    assert read_mapping({}) == Scenario()


BUDGETS: list[tuple[Any, ClientBudget | None]] = [
    ("none", None),
    ("brooker", ClientBudget(TokenBucket())),
    ("aws", ClientBudget(Budget.aws())),
    ({}, ClientBudget()),
    ({"preset": "grpc", "max_tokens": 100, "per": "fleet"}, ClientBudget(Throttle(100, 0.1), "fleet")),
    ({"ratio": 0.1, "window": "5s"}, ClientBudget(Ratio(0.1, 5))),
    ({"share": 0.1, "per": "process", "clients": 4}, ClientBudget(ActiveShare(0.1), "process", 4)),
]


@pytest.mark.parametrize(("raw", "budget"), BUDGETS, ids=str)
def test_budgets_are_the_presets_of_the_library(raw: Any, budget: ClientBudget | None) -> None:
    """A name or a table makes the rule of `forbear.budgets.Budget`; without `preset`, the parameters choose it."""
    assert read_mapping({"budget": raw}).budget == budget


def test_options_change_budget_throttle_and_rate_limit() -> None:
    """An option sets one parameter of a budget that the file names, or chooses one; a throttle has its defaults."""
    options = ["budget.max_tokens=20", "throttle.k=1.5", "service.rate_limit=90/m", "service.retry_after=2s"]
    scenario = read_mapping({"budget": "grpc"}, options)
    assert scenario.budget == ClientBudget(Throttle(20))
    assert scenario.throttle is not None
    assert scenario.throttle.budget == ClientBudget(ClientThrottle(1.5, 120))
    assert (scenario.service.rate_limit, scenario.service.burst, scenario.service.retry_after) == (1.5, 10, 2)
    assert read_mapping({}, ["budget.ratio=0.3"]).budget == ClientBudget(Ratio(0.3))
    assert read_mapping({"throttle": {}}).throttle == Throttling()
    assert [ClientBudget(per=per, clients=5).group(99) for per in ("client", "process", "fleet")] == [1, 5, 99]


class _Refusing(Budget):
    """A budget that does not count by its rule."""

    def take(self) -> bool:
        return False


NOT_SIMULATED: list[tuple[Callable[[], object], str]] = [
    (lambda: Clients(policy=retry(OSError, repeatable=False)), "`clients.policy` must be a policy that repeats calls"),
    (lambda: Clients(policy=retry(OSError) | retry(KeyError)), "`clients.policy` must be one policy, not joined ones"),
    (lambda: Clients(policy=retry(OSError, delay=lambda _: 9)), r"must be a policy without `delay`.*delay=None"),
    (lambda: Layer(policy=retry(OSError, stop=lambda _: True)), r"must be a policy without `stop`.*stop=None"),
    (lambda: ClientBudget(_Refusing()), "`budget.rule` must be a rule or a Budget that counts by one"),
    (
        lambda: ClientBudget(SharedBudget("unix:///nowhere", "x")),
        "`budget.per` must be fleet or process for a SharedBudget",
    ),
]


@pytest.mark.parametrize(("make", "text"), NOT_SIMULATED)
def test_what_a_simulation_would_ignore_is_refused(make: Callable[[], object], text: str) -> None:
    """A policy or budget whose figures would not be those of the library is an error."""
    with pytest.raises(ScenarioError, match=text):
        make()


def test_shared_budgets_and_those_of_a_host_are_simulated() -> None:
    """A SharedBudget keeps its numbers and its window; with one service, a budget per host is that of the service."""
    shared = SharedBudget("unix:///nowhere", "x", capacity=50, deposit=0.2, window=3)
    budget = ClientBudget(shared, "fleet")
    assert budget == ClientBudget(SharedBucket(50, 0.2, 3), "fleet")
    assert (budget.group(80), replace(budget, per="process", clients=8).group(80)) == (1, 8)
    assert ClientBudget(Budget.per_host()) == ClientBudget(TokenBucket())


def test_a_policy_brings_its_attempt_timeout() -> None:
    """The attempt timeout of the policy counts unless the scenario sets one."""
    policy = Policy(OSError, Limits(), attempt_timeout=3)
    assert Clients(policy=policy).attempt_timeout == 3
    assert Clients(policy=policy, attempt_timeout=2).attempt_timeout == 2


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"durtion": "1s"}, "`durtion`", "'1s'", "did you mean duration?"),
    ({"service": {"time": 50}}, "`service.time`", "50", '"50ms"'),
    ({"service": {"time": "50"}}, "`service.time`", "'50'", '"50ms"'),
    ({"service": {"time": "0s"}}, "`service.time`", "0.0", '"50ms"'),
    ({"service": {"workers": 0}}, "`service.workers`", "0", "1 or more"),
    ({"service": {"workers": 1.5}}, "`service.workers`", "1.5", "1 or more"),
    ({"clients": {"count": 10**20}}, "`clients.count`", "100000000000000000000", "up to 1000000000"),
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
    ({"budget": "nope"}, "`budget`", "'nope'", "write one of brooker"),
    ({"budget": {"preset": 3}}, "`budget.preset`", "3", "write one of brooker"),
    ({"budget": {"preset": "aws", "ratio": 1}}, "`budget.ratio`", "1", "remove it"),
    ({"budget": {"ratoi": 1}}, "`budget.ratoi`", "1", "remove it"),
    ({"budget": {"capcity": 1}}, "`budget.capcity`", "1", "did you mean capacity?"),
    ({"budget": {"ratio": -1}}, "`budget`", "-1", "change that value"),
    ({"budget": {"ratio": "x"}}, "`budget.ratio`", "'x'", "correct the value"),
    ({"budget": {"window": 5}}, "`budget.window`", "5", "correct the value"),
    ({"budget": {"per": "host"}}, "`budget.per`", "'host'", "write 'client'"),
    ({"budget": {"clients": 0}}, "`budget.clients`", "0", "1 or more"),
    ({"throttle": {"k": 1}}, "`throttle.k`", "1", "write 2.5"),
    ({"service": {"rate_limit": "0/s"}}, "`service.rate_limit`", "0.0", '"100/s"'),
    ({"service": {"rate_limit": 5}}, "`service.rate_limit`", "5", '"100/s"'),
    ({"service": {"burst": 0}}, "`service.burst`", "0", "1 or more"),
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


def test_an_option_reaches_into_lists() -> None:
    """The number of an item, from 0, stands in brackets after the name of its list."""
    document = {
        "windows": [{}, {"start": "2m"}],
        "clients": {"changes": [{"rate": "1/s"}]},
        "layers": [{"policy": "iam"}],
    }
    options = ["windows[1].length=5s", "clients.changes[0].rate=7/s", "layers[0].policy.attempts=2"]
    scenario = read_mapping(document, options)
    assert [window.length for window in scenario.windows] == [60, 5]
    assert scenario.clients.changes[0].rate == 7
    assert scenario.layers[0].policy.limits.attempts == 2
    assert document["windows"] == [{}, {"start": "2m"}]
    for option in ("windows[2].length=5s", "layers[0].layers[0].length=5s", "clients[0].rate=5/s"):
        with pytest.raises(ScenarioError, match=r"must be about one of the \d items of \w+, from \w+\[0\] on, got \d"):
            read_mapping(document, [option])


@pytest.mark.parametrize("option", ["workers", "a.b.c.d=1", "windows.start=1s"])
def test_wrong_options_get_one_line(option: str) -> None:
    """An option without a value, too deep, or into a list is refused."""
    with pytest.raises(
        ScenarioError, match=r"write it as service.workers=20|write windows\[0\].start for the first item"
    ):
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
    with pytest.raises(ScenarioError, match=r"`clients.policy` must be a policy without a budget"):
        Clients(policy=Policy(OSError, budget=Budget()))
    with pytest.raises(ScenarioError, match=r"`budget.rule` must be a rule of a forbear.budgets.Budget, got 3"):
        ClientBudget(3)  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        Server().workers = 3  # type: ignore[misc]
    for section in (Scenario, Clients, RateChange, Server, Window, ClientBudget, Throttling):
        assert all(rule.unit and rule.text for rule in rules(section).values())


def test_a_list_in_an_option() -> None:
    """An option may write a whole list as in TOML, so that a file's windows can be left out or replaced."""
    document = {"windows": [{"start": "5s"}]}
    assert read_mapping(document, ["windows=[]"]).windows == ()
    replaced = read_mapping(document, ['windows=[{ start = "7s", length = "2s" }]', "windows[0].kind=hold"]).windows
    assert [(each.kind, each.start, each.length) for each in replaced] == [("hold", 7, 2)]
    with pytest.raises(ScenarioError, match=r"`windows` must be a list of tables as in TOML.*; write \[\] for none"):
        read_mapping(document, ["windows=[{"])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("s.toml", "a." * 20_000 + "b = 1", "at most 200 dots in a line"),
        ("s.toml", "# comment\n" * 30_000, "at most 256 KiB"),
        ("s.json", "[" * 100_000, "must be JSON: it has too many levels"),
        ("s.json", '{"a": ' * 900 + "1" + "}" * 900, "of many levels"),
        ("s.json", '{"duration": ' + "9" * 5000 + "}", "must be JSON"),
    ],
)
def test_hostile_files(tmp_path: Path, name: str, text: str, words: str) -> None:
    """Deep, wide and large ones get one clear line, in little memory."""
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ScenarioError, match=words) as caught:
        read_file(file)
    assert "\n" not in str(caught.value)


def test_a_device_is_not_read_to_its_end() -> None:
    """It has none."""
    with pytest.raises(ScenarioError, match="/dev/zero must have at most 256 KiB"):
        read_file(Path("/dev/zero"))
