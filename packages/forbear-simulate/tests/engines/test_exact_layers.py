"""Layers of services that each retry: attempts multiply, unless budgets or the guard of nested retries stop that."""

import pytest

from forbear.core.backoff import Constant
from forbear.core.budget import Ratio, TokenBucket
from forbear.core.limits import Limits
from forbear.policy import Policy
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.scenario.budgets import ClientBudget
from forbear_simulate.scenario.fields import ScenarioError
from forbear_simulate.scenario.reading import read_mapping
from forbear_simulate.scenario.scenario import Clients, Layer, Scenario, Server, Window

FOUR = Policy(OSError, Limits(4, None), Constant(0.01))
ONCE = Policy(OSError, Limits(1))
OUT = (Window("refuse", 0, 60),)


@pytest.mark.parametrize(("layers", "guard", "load"), [(0, False, 4), (1, False, 16), (2, False, 64), (2, True, 4)])
def test_attempts_multiply(layers: int, guard: bool, load: int) -> None:
    """Three services in a chain, each with 4 attempts, make 4³ = 64 attempts of a call; with the guard there are 4."""
    herd = Clients(arrivals="herd", count=10, policy=FOUR)
    chain = (Layer(FOUR),) * layers
    series = simulate_exact(Scenario(30, 1, herd, windows=OUT, layers=chain, nested_guard=guard))
    assert series.total("first_attempts") == series.total("gave_up") == 10
    assert series.total("refusals") == 10 * load
    assert series.amplification == load


def test_a_policy_may_retry_what_others_gave_up_on() -> None:
    """`retry_exhausted` switches the guard off for one caller."""
    herd = Clients(arrivals="herd", count=10, policy=FOUR.replace(retry_exhausted=True))
    series = simulate_exact(Scenario(30, 1, herd, windows=OUT, layers=(Layer(FOUR),) * 2, nested_guard=True))
    assert series.amplification == 16


def test_budgets_of_layers_bound_the_product() -> None:
    """With a budget of 10 % at each of three layers, an outage costs 1.1³ times the load."""
    budget = ClientBudget(Ratio(0.1, 5), "fleet")
    clients = Clients(rate=200, policy=FOUR)
    server = Server(workers=1000, time=0.01, failure=0.5)
    layers = (Layer(FOUR, budget=budget),) * 2
    series = simulate_exact(Scenario(30, 1, clients, server, (), budget, layers=layers), seed=4)
    free = simulate_exact(Scenario(30, 1, clients, server, layers=(Layer(FOUR),) * 2), seed=4)
    assert 1.02 < series.amplification < 1.1**3
    assert series.total("budget_refusals") > 1000
    assert free.amplification > 1.9  # (1 - 0.5^64) / 0.5 without limits of time


@pytest.mark.parametrize(("abandoned", "attempts"), [("done", 5), ("dropped", 2)])
def test_layers_go_on_after_their_caller_has_gone(abandoned: str, attempts: int) -> None:
    """The client stops waiting after 1 s; the layer, which retries each 0.5 s, makes its five attempts, or stops."""
    clients = Clients(arrivals="herd", count=1, attempt_timeout=1, policy=ONCE)
    layer = Layer(Policy(OSError, Limits(5, None), Constant(0.5)), budget=ClientBudget(TokenBucket(9)))
    server = Server(abandoned=abandoned)
    series = simulate_exact(Scenario(20, 0.5, clients, server, OUT, layers=(layer,)))
    assert series.total("refusals") == attempts
    assert series.gave_up.index(1) == 1 / 0.5


@pytest.mark.parametrize(("abandoned", "wasted", "busy"), [("done", 1, 2), ("dropped", 0, 1)])
def test_a_success_that_nobody_waits_for(abandoned: str, wasted: int, busy: int) -> None:
    """A service of 2 s answers a layer whose client left after 1 s: the work is wasted, or it stops with the client."""
    clients = Clients(arrivals="herd", count=1, attempt_timeout=1, policy=ONCE)
    server = Server(workers=1, time=2, times="constant", abandoned=abandoned)
    series = simulate_exact(Scenario(9, 1, clients, server, layers=(Layer(FOUR),) * 2))
    assert (series.total("wasted"), series.total("successes"), series.total("gave_up")) == (wasted, 0, 1)
    assert series.total("in_system") == pytest.approx(busy)


def test_layers_in_a_file() -> None:
    """A list of tables; a dropped request needs the timeout of the last layer, which a policy may bring."""
    layer = {"policy": "interactive", "attempt_timeout": "2s", "budget": {"preset": "ratio", "per": "fleet"}}
    scenario = read_mapping({"layers": [layer, {}], "nested_guard": True}, ["nested_guard=false"])
    assert scenario.layers[0].budget == ClientBudget(Ratio(), "fleet")
    assert (scenario.layers[0].attempt_timeout, scenario.layers[1], scenario.nested_guard) == (2, Layer(), False)
    drop = [{"kind": "drop"}]
    assert read_mapping({"layers": [layer], "windows": drop}).windows[0].kind == "drop"
    for wrong, text in (
        ({"layers": [{}], "windows": drop, "clients": {"attempt_timeout": "1s"}}, "`layers.attempt_timeout` must be"),
        ({"layers": {}}, r"`layers` must be a list of tables"),
        ({"layers": [{"polcy": 1}]}, r"`layers\[0\].polcy` .* did you mean policy"),
        ({"nested_guard": 1}, "`nested_guard` must be true or false, got 1"),
    ):
        with pytest.raises(ScenarioError, match=text):
            read_mapping(wrong)
    with pytest.raises(ScenarioError, match=r"`layers.policy` must be a forbear.Policy"):
        Layer(3)  # type: ignore[arg-type]
