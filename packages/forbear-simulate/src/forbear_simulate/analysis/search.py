"""The inverse mode: find the values of one key with which a simulation keeps a limit."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

from forbear_simulate.analysis.goal import FigureGoal, read_goal
from forbear_simulate.analysis.runs import Engine, simulate
from forbear_simulate.scenario.changes import full_key, is_whole, usual_range, with_value, words
from forbear_simulate.scenario.fields import ScenarioError, refuse
from forbear_simulate.scenario.scenario import Scenario

_GRID = 9  # values that show whether the goal is reached on one side
_CLOSE = 0.02  # bisection ends at this distance, relative to the value


@dataclass(frozen=True, slots=True)
class ValueTrial:
    """A value that a search tried: the figure of its simulation, and whether it keeps the limit.

    `figure` is None for a value that the engine cannot simulate.
    """

    value: float | str
    figure: float | None
    fits: bool


@dataclass(frozen=True, slots=True)
class FoundValues:
    """The result of a search. Example: see `find`."""

    key: str
    goal: FigureGoal
    fits: tuple[tuple[float, float], ...]
    """The intervals of numbers that fit, from the lowest; empty if none does, and for words."""
    words: tuple[str, ...]
    """The words that fit, the best first."""
    monotone: bool
    """True if the tried values that fit are all on one side: their end is exact to 2 %."""
    trials: tuple[ValueTrial, ...]
    """All values that were tried, in their order."""

    @property
    def value(self) -> float | str | None:
        """A value at the end of what fits: the largest, or the smallest if all larger ones fit; None if none does.

        If every value fits, it is the largest one. Of words, it is the best one.
        """
        if self.words:
            return self.words[0]
        if not self.fits:
            return None
        low, high = self.fits[-1]
        return low if high == self.trials[-1].value and low != self.trials[0].value else high

    def __str__(self) -> str:
        first, last = self.trials[0].value, self.trials[-1].value
        known = [trial for trial in self.trials if trial.figure is not None]
        unknown = [str(trial.value) for trial in self.trials if trial.figure is None]
        goal, span = f"{self.goal} holds for", f"{self.key} from {_show(first)} to {_show(last)}"
        texts: list[str] = []
        if isinstance(first, str):
            figures = ", ".join(f"{trial.value} {self.goal.show(trial.figure or 0.0)}" for trial in known)
            fitting = " and ".join(self.words)
            texts.append(f"{goal} {f'{self.key} {fitting}' if fitting else f'no {self.key}'} ({figures})")
        elif not self.fits:
            nearest = min(known, key=lambda trial: abs((trial.figure or 0.0) - self.goal.limit))
            figure = self.goal.show(nearest.figure or 0.0)
            texts.append(f"{goal} no {span}; the nearest is {figure}, at {_show(nearest.value)}")
        elif all(trial.fits for trial in known):
            texts.append(f"{goal} every {span}")
        else:
            spans = " and ".join(_span(low, high) for low, high in self.fits)
            texts.append(f"{goal} {self.key} {spans}")
            numbers = [_number(trial) for trial in self.trials]
            if not self.monotone and any(b - a != 1 for a, b in pairwise(numbers)):
                texts.append("more or less does not always help, so values between the tried ones may differ")
        if unknown:
            texts.append(f"the engine cannot simulate {', '.join(unknown)}")
        return "; ".join(texts)


def find(
    scenario: Scenario,
    key: str,
    *,
    such_that: str,
    low: float | None = None,
    high: float | None = None,
    engine: Engine = "cohort",
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> FoundValues:
    """Find the values under `key` with which a simulation of the scenario keeps a limit.

    The key is that of a scenario file ("budget.ratio", "service.workers"), or a limit or wait of the policy alone
    ("attempts", "maximum", "jitter"). `such_that` is a goal such as "recovery < 60 s". Numbers are tried from `low` to
    `high`, in seconds for times. None is the usual range of the key: for most, a tenth of the scenario's number to ten
    times as much. Up to nine values, evenly spread in their logarithm, show on which side the goal is reached.
    Bisection then finds each end to 2 %. Words are tried one by one. `progress` is called with the number of
    simulations so far.

    Raises ScenarioError for a wrong key, goal or range, and if the scenario does not have the figure of the goal.

    >>> scenario = Scenario(duration=10, clients=Clients(rate=50, attempt_timeout=1), service=Server(workers=2))
    >>> find(scenario, "service.workers", such_that="amplification < 1.1", low=2, high=8).fits
    ((3.0, 8),)
    """
    return _ValueSearch(scenario, full_key(key), read_goal(such_that), engine, seed, progress).run(low, high)


class _ValueSearch:
    """One search. It simulates each value once."""

    def __init__(
        self,
        scenario: Scenario,
        key: str,
        goal: FigureGoal,
        engine: Engine,
        seed: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._scenario, self._key, self._goal = scenario, key, goal
        self._engine: Engine = engine
        self._seed = seed
        self._progress = progress
        self._trials: dict[float | str, ValueTrial] = {}

    def run(self, low: float | None, high: float | None) -> FoundValues:
        """Try values and return those that fit."""
        choices = words(self._key)
        if choices is not None:
            return self._scan(choices)
        low, high = self._range(low, high)
        whole = is_whole(self._scenario, self._key)
        grid = [self._try(value) for value in _values(low, high, whole=whole)]
        switches = [(a, b) for a, b in pairwise(grid) if a.fits != b.fits]
        ends = [self._bisect(a, b, whole=whole) for a, b in switches]
        starts = [low] if grid[0].fits else []
        stops: list[float] = []
        for before, after in ends:
            (stops if before.fits else starts).append(_number(before if before.fits else after))
        if grid[-1].fits:
            stops.append(high)
        trials = sorted(self._trials.values(), key=_number)
        return FoundValues(
            self._key, self._goal, tuple(zip(starts, stops, strict=True)), (), len(switches) <= 1, tuple(trials)
        )

    def _scan(self, choices: Iterable[str]) -> FoundValues:
        """Try all words and return those that fit, in the order of their figures."""
        for word in choices:
            try:
                self._try(word)
            except ScenarioError:
                if self._engine == "exact":
                    raise
                self._trials[word] = ValueTrial(word, None, fits=False)
        better = -1 if ">" in self._goal.comparison else 1
        trials = tuple(self._trials.values())
        if all(trial.figure is None for trial in trials):
            self._try(str(trials[0].value))  # it raises the error again
        fitting = sorted((trial for trial in trials if trial.fits), key=lambda trial: better * (trial.figure or 0.0))
        return FoundValues(self._key, self._goal, (), tuple(str(trial.value) for trial in fitting), False, trials)

    def _range(self, low: float | None, high: float | None) -> tuple[float, float]:
        usual = usual_range(self._scenario, self._key)
        if usual is None and (low is None or high is None):
            with_value(self._scenario, self._key, low or high or 1)  # an unknown key is the first error
            refuse("low and high", f"set for {self._key}, which has no usual range", (low, high), "pass both")
        low, high = (usual[0] if low is None else low, usual[1] if high is None else high) if usual else (low, high)
        if low is None or high is None or not 0 < low < high:
            refuse("low", "more than zero and below `high`", (low, high), "pass low=1, high=10")
        return low, high

    def _bisect(self, before: ValueTrial, after: ValueTrial, *, whole: bool) -> tuple[ValueTrial, ValueTrial]:
        """Return two neighbours, close to each other, of which the same one fits."""
        while True:
            a, b = _number(before), _number(after)
            if (b - a <= 1) if whole else (b - a <= _CLOSE * a):
                return before, after
            middle = self._try((int(a) + int(b)) // 2 if whole else (a * b) ** 0.5)
            before, after = (middle, after) if middle.fits == before.fits else (before, middle)

    def _try(self, value: float | str) -> ValueTrial:
        """Simulate a value, once."""
        trial = self._trials.get(value)
        if trial is None:
            changed = with_value(self._scenario, self._key, value)
            figures = simulate(changed, engine=self._engine, seed=self._seed, workers=1).figures
            trial = ValueTrial(value, self._goal.value(figures), self._goal.is_reached(figures))
            self._trials[value] = trial
            if self._progress is not None:
                self._progress(len(self._trials))
        return trial


def _values(low: float, high: float, *, whole: bool) -> list[float]:
    """Return the values of the first look: at most nine whole numbers or more, evenly spread in their logarithm."""
    if whole and high - low <= _GRID + 1:
        return [*range(round(low), round(high) + 1)]
    inner = [exp(log(low) + (log(high) - log(low)) * i / (_GRID - 1)) for i in range(1, _GRID - 1)]
    spread = [low, *inner, high]
    return sorted({round(value) for value in spread}) if whole else spread


def _number(trial: ValueTrial) -> float:
    return float(trial.value)


def _show(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _span(low: float, high: float) -> str:
    return _show(low) if low == high else f"from {_show(low)} to {_show(high)}"
