"""What happens once: decorating a function, and deriving a policy from another."""

from dataclasses import dataclass, replace
from functools import partial

import tenacity
from google.api_core.retry import Retry

import forbear
from benchmarks import work
from benchmarks.contenders import BARE, CAREFUL, CONTENDERS, Waits, policy
from benchmarks.measure import Effort, Sampler, race, repeated
from benchmarks.table import OURS, Table, Target

DATACLASS = "dataclasses.replace"


def build(effort: Effort) -> Table:
    """A policy from scratch, and a function decorated with it."""
    samplers = {
        name: repeated(partial(contender.wrap, work.steady(), Waits()))
        for name, contender in CONTENDERS.items()
        if name != BARE
    }
    samplers[f"{OURS}, decorating only"] = repeated(partial(policy(Waits()), work.steady()))
    samplers[f"{OURS}, policy only"] = repeated(partial(forbear.retry, on=work.ERROR, attempts=work.ATTEMPTS))
    samplers[f"{OURS}, short"] = repeated(partial(_decorate, work.steady()))
    targets = Target(f"{OURS}, policy only", 5), Target(f"{OURS}, short", 8)
    title = "Make a policy and decorate a function"
    return Table("build", title, "us", 1e6, race(samplers, effort), (CAREFUL,), targets)


def derive(effort: Effort) -> Table:
    """A policy that differs in one value."""
    stop = tenacity.stop_after_delay(5)
    samplers: dict[str, Sampler] = {
        DATACLASS: repeated(partial(replace, _Plan(), timeout=5)),
        OURS: repeated(partial(policy(Waits()).with_timeout, 5)),
        f"{OURS}, with_backoff": repeated(partial(policy(Waits()).with_backoff, policy(Waits()).backoff)),
        "tenacity": repeated(partial(tenacity.Retrying().copy, stop=stop)),
        "google-api-core": repeated(partial(Retry().with_timeout, 5)),
    }
    title = "Derive a policy with another timeout"
    targets = (Target(OURS, 5), Target(f"{OURS}, with_backoff", 5))
    note = f"{DATACLASS}: of a frozen dataclass with five fields and no checks"
    return Table("derive", title, "us", 1e6, race(samplers, effort), (DATACLASS,), targets, notes=(note,))


def _decorate(function: work.Work) -> object:
    return forbear.retry(on=work.ERROR, attempts=work.ATTEMPTS)(function)


@dataclass(frozen=True)
class _Plan:
    """The least that a policy holds."""

    on: type[Exception] = work.ERROR
    attempts: int = work.ATTEMPTS
    timeout: float = 60
    initial: float = 1
    maximum: float = 64
