"""`RetryUse`: one retry in the code, of any library or written by hand, in the same words.

Readers of libraries and of loops return its parts. None means "unknown", which
no rule reports.
"""

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from forbear_audit.reading.scopes import Function, Loop, Scopes

Wait = Literal["none", "fixed", "growing", "unknown"]

Flaw = tuple[str, ast.AST, str]
"""A flaw of a retry: the rule, the place, and the message."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a retry: `attempts`, infinity without one, and whether there is a `deadline`."""

    attempts: float | None = None
    deadline: bool | None = None
    at_most_two_attempts: bool = False
    """By default: a parameter sets the limit."""

    @property
    def unbounded(self) -> bool:
        """True if the retry surely has neither limit."""
        return self.attempts == math.inf and self.deadline is False


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of a retry. `longest` is in seconds, infinity without a cap; `node` is the code that says them."""

    kind: Wait = "unknown"
    jitter: bool | None = None
    longest: float | None = None
    node: ast.AST | None = None
    reads_header: bool = False


@dataclass(frozen=True, slots=True)
class RetriedErrors:
    """The errors that are retried, by their dotted `names`; with `has_predicate` a test decides about them, too.

    In a loop, `places` has the handler of each error. Of `inspected` errors a handler reads which they are, and after
    `cured` ones it changes something.
    """

    names: tuple[str, ...] | None = None
    node: ast.AST | None = None
    has_predicate: bool = False
    places: Mapping[str, ast.AST] = field(default_factory=dict[str, ast.AST])
    inspected: frozenset[str] = frozenset()
    cured: frozenset[str] = frozenset()

    @property
    def everything(self) -> bool:
        """True if every Exception is retried."""
        return not self.has_predicate and any(name in ("Exception", "BaseException") for name in self.names or ())


@dataclass(frozen=True, slots=True)
class RepeatedCode:
    """The code that a retry repeats: `region` is empty for a policy alone.

    `tries` are the attempts of a loop that repeats after errors; one that reads `statuses` repeats after these. Of code
    that is repeated `by_call` other calls are not repeated; `call` has what is passed to it. `around` is the code of
    what repeats it, where that stands elsewhere.
    """

    region: list[ast.stmt] = field(default_factory=list[ast.stmt])
    function: Function | None = None
    loop: Loop | None = None
    tries: tuple[ast.Try, ...] = ()
    statuses: tuple[int, ...] = ()
    by_call: bool = False
    call: ast.Call | None = None
    around: list[ast.stmt] = field(default_factory=list[ast.stmt])

    @property
    def attempt(self) -> list[ast.stmt]:
        """The code of one attempt: of a loop the bodies of its `tries`, and what it always does before; else all."""
        if not self.tries:
            return self.region
        before = self.region[: self.region.index(self.tries[0])] if self.tries[0] in self.region else []
        return [*(each for each in before if not isinstance(each, ast.If)), *self.tried]

    @property
    def tried(self) -> list[ast.stmt]:
        """The bodies of all `tries`."""
        return [statement for attempt in self.tries for statement in attempt.body]

    @property
    def handlers(self) -> list[ast.ExceptHandler]:
        """The error handlers of all `tries`."""
        return [handler for attempt in self.tries for handler in attempt.handlers]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A policy as a reader returns it. `flaws` are those that the reader saw itself.

    One that `is_safe` repeats nothing that may have been executed.
    """

    library: str
    limits: Limits = Limits()
    waits: Waits = Waits()
    errors: RetriedErrors = RetriedErrors()
    is_safe: bool = False
    flaws: tuple[Flaw, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryUse:
    """A retry: its policy, the node that stands for it, and the code that it repeats.

    A policy that is `defined_elsewhere` is reported there.
    """

    policy: RetryPolicy
    node: ast.AST
    code: RepeatedCode = field(default_factory=RepeatedCode)
    defined_elsewhere: bool = False


class RetryUses(list[RetryUse]):
    """The retries of a module, also by what they repeat: a file may have very many, so none is looked for twice."""

    def __init__(self, uses: list[RetryUse], module: Scopes) -> None:
        super().__init__(uses)
        self.by_place = {id(module.function_of(use.node)): use for use in uses if use.code.by_call and use.code.region}
        self.by_function = {
            id(use.code.function): use for use in uses if use.code.function and use.code.region and not use.code.by_call
        }
        self.by_node = {id(use.node): use for use in uses}
        self.by_call = {id(use.node): use for use in uses if use.code.by_call}
        self.by_loop = {id(use.code.loop): use for use in uses if use.code.loop is not None}


def grows_to(first: float, multiplier: float, attempts: float | None) -> float | None:
    """Return the longest wait of an exponential backoff without a cap, None if it is unknown."""
    if attempts is None or multiplier < 0:
        return None
    try:
        return math.inf if attempts > 64 else float(first) * float(multiplier) ** max(attempts - 2, 0)
    except OverflowError:
        return math.inf


def choose_kind(first: object, factor: object, cap: object) -> Wait:
    """Return whether waits that begin with `first` and are multiplied by `factor` grow, or stay at their cap."""
    is_capped = isinstance(first, (int, float)) and isinstance(cap, (int, float)) and cap <= first
    return "fixed" if is_capped or factor == 1 else "growing"


def seconds(value: object, default: float) -> float:
    """Return a constant as a number, else the default."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default
