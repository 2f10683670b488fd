"""The scenario: a frozen, checked value that says what the clients do and what the service can do.

Times are in seconds and rates in calls per second. `reading` makes a scenario of a file or of options.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from forbear import Policy
from forbear_simulate.scenario.budgets import ClientBudget, Throttling
from forbear_simulate.scenario.fields import (
    ScenarioError,
    Section,
    count,
    flag,
    number,
    rate,
    refuse,
    seconds,
    share,
    word,
)

if TYPE_CHECKING:
    pass

_DEFAULT = Policy(OSError, name="default")
_MOST_BINS = 1_000_000


def check_policy(key: str, policy: Any, cure: str) -> None:
    """Raise ScenarioError unless `policy` is a Policy that can be simulated, without a budget.

    `cure` says where a budget belongs. A simulated failure has no error, so a policy must not ask for it.
    """
    if not isinstance(policy, Policy):
        refuse(key, "a forbear.Policy, in a file the name of one", policy, 'write "default"')
    if policy.budget is not None:
        refuse(key, "a policy without a budget", policy.budget, cure)
    if policy.others:
        refuse(key, "one policy, not joined ones", f"{1 + len(policy.others)} policies", "simulate each one alone")
    for name in ("stop", "delay"):
        if getattr(policy, name) is not None:
            rule = f"a policy without `{name}`, since simulated failures have no error"
            refuse(key, rule, getattr(policy, name), f"simulate policy.replace({name}=None)")
    if policy.repeatable is False:
        refuse(key, "a policy that repeats calls", "repeatable=False", "simulate policy.with_repeatable(None)")


@dataclass(frozen=True, slots=True)
class RateChange(Section):
    """A change of the rate of open clients: a step, or a ramp if it takes time. A spike is two of them.

    >>> spike = RateChange(start=10, rate=300), RateChange(start=12, rate=50)
    >>> scenario = Scenario(duration=20, clients=Clients(rate=50, changes=spike), service=Server(workers=5))
    >>> simulate(scenario).figures.longest_queue > 100
    True
    """

    KEY: ClassVar[str] = "clients.changes"

    start: float = seconds("when the change begins", 0.0, zero=True)
    rate: float = rate("the rate after the change", 1.0)
    length: float = seconds("how long the rate takes to change, at an even pace; 0 is a step", 0.0, zero=True)


@dataclass(frozen=True, slots=True)
class Clients(Section):
    """The clients: what they call for, how often, and how they retry.

    Open clients call at a rate, whatever the service does: `arrivals` is "poisson" or "regular". Each call belongs to
    one of `count` clients. "closed" clients are `count`, and each one thinks, calls, and waits for the end of its call.
    A "herd" is `count` clients that call once, all at the start. The attempt timeout is that of the policy, if none is
    set here. Example: see `Scenario`.
    """

    KEY: ClassVar[str] = "clients"

    arrivals: str = word("how calls begin", "poisson", "poisson", "regular", "closed", "herd")
    rate: float = rate("the rate of new calls of open clients, all together", 100.0)
    changes: tuple[RateChange, ...] = ()
    count: int = count("the number of clients", 1000)
    think_time: float = seconds("the mean time between two calls of a closed client, exponential", 1.0)
    attempt_timeout: float | None = seconds("how long a client waits for a response", None, none="no limit")
    policy: Policy = _DEFAULT

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        check_policy("clients.policy", self.policy, "set `budget` of the scenario")
        if self.attempt_timeout is None:
            object.__setattr__(self, "attempt_timeout", self.policy.attempt_timeout)
        end = 0.0
        for change in self.changes:
            if change.start < end:
                refuse(
                    "clients.changes.start", f"{end:g} s or more, the end of the change before", change.start,
                    "list the changes in the order of time",
                )  # fmt: skip
            end = change.start + change.length
        if self.changes and self.arrivals not in ("poisson", "regular"):
            refuse("clients.changes", f"empty for {self.arrivals} clients", len(self.changes), "remove the changes")


@dataclass(frozen=True, slots=True)
class Window(Section):
    """A time in which the service is slow or out.

    "slow": work that begins takes `factor` times as long. "refuse": new requests are refused at once, and accepted ones
    are finished. "drop": new requests get no response, and responses are lost. "hold": requests queue, and no work
    begins. Example: see `Scenario`.
    """

    KEY: ClassVar[str] = "windows"

    kind: str = word("what the service does", "refuse", "slow", "refuse", "drop", "hold")
    start: float = seconds("when the window begins", 0.0, zero=True)
    length: float = seconds("how long the window lasts", 60.0)
    factor: float = number("how many times longer work takes in a slow window", 1.0)

    @property
    def end(self) -> float:
        """The time in seconds at which the window has ended."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Server(Section):
    """The service: workers with one queue, first in, first out.

    With a rate limit, a bucket of `burst` tokens gets `rate_limit` tokens a second. A request takes one. It gets a
    throttling error at once if there is none; the error may say when to come back. Example: see `Scenario`.
    """

    KEY: ClassVar[str] = "service"

    workers: int = count("how many requests are served at the same time", 10)
    queue: int | None = count(
        "how many requests may wait for a worker; others are refused", None, least=0, none="no bound"
    )
    time: float = seconds("the mean time that a worker needs for a request", 0.05)
    times: str = word("the distribution of that time", "exponential", "exponential", "constant", "lognormal")
    sigma: float = number("the sigma of lognormal times: the standard deviation of their logarithm", 1.0)
    failure: float = share("the share of served requests whose response is a transient error", 0.0)
    abandoned: str = word("whether a request is still done after its client gave up on it", "done", "done", "dropped")

    rate_limit: float | None = rate("how many requests the service takes", None, zero=False, none="no limit")
    burst: int = count("how many requests the rate limit lets through at once, after a pause", 10)
    retry_after: float | None = seconds(
        "the Retry-After of a request over the rate limit", None, zero=True, none="the response has none"
    )

    @property
    def capacity(self) -> float:
        """The requests that the service can serve in a second."""
        return self.workers / self.time


@dataclass(frozen=True, slots=True)
class Layer(Section):
    """A service between the clients and the service below, which makes one call for each request, with retries.

    It has as many workers as it needs, and takes no time of its own. When its retries are used up, its caller gets a
    transient error. It goes on after its caller has given up, unless the service drops abandoned work.

    >>> layer = Layer(forbear.retry(OSError, attempts=3))
    >>> scenario = Scenario(duration=20, clients=Clients(rate=2), windows=(Window(length=20),), layers=(layer,))
    >>> simulate(scenario, engine="exact", workers=1).figures.amplification > 5  # the retries multiply
    True
    """

    KEY: ClassVar[str] = "layers"

    policy: Policy = _DEFAULT
    attempt_timeout: float | None = seconds("how long the layer waits for a response", None, none="no limit")
    budget: ClientBudget | None = None

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        check_policy("layers.policy", self.policy, "set `budget` of the layer")
        if self.attempt_timeout is None:
            object.__setattr__(self, "attempt_timeout", self.policy.attempt_timeout)


@dataclass(frozen=True, slots=True)
class Scenario(Section):
    """One simulation: clients, a service, the windows in which it is slow or out, and how long to look.

    Raises ScenarioError, one line with the key, the rule, the value and the cure.

    >>> outage = Window(kind="refuse", start=5, length=5)
    >>> scenario = Scenario(duration=20, clients=Clients(rate=80), service=Server(workers=5), windows=(outage,))
    >>> simulate(scenario).figures.refusals > 0
    True
    """

    duration: float = seconds("how long the simulation lasts", 600.0)
    step: float = seconds("the width of a time bin of the results", 0.1)
    clients: Clients = field(default_factory=Clients)
    service: Server = field(default_factory=Server)
    windows: tuple[Window, ...] = ()
    budget: ClientBudget | None = None
    throttle: Throttling | None = None
    layers: tuple[Layer, ...] = ()
    """The services between clients and service, from the one that the clients call."""
    nested_guard: bool = flag("whether an error after which a layer used up its retries is not retried above it", False)

    def __post_init__(self) -> None:
        Section.__post_init__(self)
        if self.step > self.duration:
            refuse("step", f"at most the duration of {self.duration:g} s", self.step, "choose a smaller step")
        if self.duration / self.step > _MOST_BINS:
            refuse(
                "step",
                f"at least a millionth of the duration of {self.duration:g} s",
                self.step,
                "choose a larger step",
            )
        end = 0.0
        for window in self.windows:
            if window.start < end:
                refuse(
                    "windows.start", f"{end:g} s or more, the end of the window before", window.start,
                    "list the windows in the order of time, without overlap",
                )  # fmt: skip
            end = window.end
            caller, key = (self.layers[-1], "layers") if self.layers else (self.clients, "clients")
            if window.kind == "drop" and caller.attempt_timeout is None:
                raise ScenarioError(
                    f"`{key}.attempt_timeout` must be set with a window of kind drop, got None; "
                    "set it, because a dropped request gets no response"
                )

    @property
    def budgets(self) -> tuple[ClientBudget, ...]:
        """The retry budgets of the clients, then their throttle as budgets: none, one or both."""
        throttle = None if self.throttle is None else self.throttle.budget
        return tuple(each for each in (self.budget, throttle) if each is not None)

    @property
    def bins(self) -> int:
        """The number of time bins; the last one may reach past the duration."""
        return -int(-self.duration // self.step)

    def window_at(self, now: float) -> Window | None:
        """Return the window that `now` (in seconds) lies in, None if there is none."""
        return next((window for window in self.windows if window.start <= now < window.end), None)
