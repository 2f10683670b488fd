"""`RetryUse`: one retry in the code, of any library or written by hand, in the same words."""

import ast
import math
from dataclasses import dataclass, field
from typing import Literal

from forbear_audit.reading.modules import Function

Wait = Literal["none", "fixed", "growing", "unknown"]


@dataclass
class RetryUse:
    """A retry: its limits, its waits, its errors, and the code that it repeats.

    None means "unknown", which no rule reports. `attempts` is the limit of attempts, infinity without one. `deadline`
    is whether there is a limit of time. `longest` is the longest wait in seconds, infinity without a cap. `errors` are
    the dotted names of the errors that are retried. `region` is the code that is repeated, empty for a policy alone.
    """

    library: str
    node: ast.AST
    attempts: float | None = None
    deadline: bool | None = None
    wait: Wait = "unknown"
    jitter: bool | None = None
    longest: float | None = None
    errors: tuple[str, ...] | None = None
    error_node: ast.AST | None = None
    wait_node: ast.AST | None = None
    places: dict[str, ast.AST] = field(default_factory=dict[str, ast.AST])  # the handler of each error of a loop
    inspected_errors: frozenset[str] = frozenset()  # errors that a handler looks at
    cured_errors: frozenset[str] = frozenset()  # errors after which a handler changes something
    region: list[ast.stmt] = field(default_factory=list[ast.stmt])
    function: Function | None = None
    loop: ast.For | ast.AsyncFor | ast.While | None = None
    tries: list[ast.Try] = field(default_factory=list[ast.Try])
    at_most_two_attempts: bool = False  # by default it makes at most two attempts
    has_predicate: bool = False  # a predicate decides about the errors, too
    safe: bool = False  # it repeats nothing that may have been executed
    statuses: tuple[int, ...] = ()  # a loop that reads statuses retries these
    reads_header: bool = False
    defined_elsewhere: bool = False  # the policy stands elsewhere, and is reported there
    flaws: list[tuple[str, ast.AST, str]] = field(default_factory=list[tuple[str, ast.AST, str]])
    """The flaws that the reader of the library saw itself: rule, place, message."""

    @property
    def unbounded(self) -> bool:
        """True if the retry surely has neither limit."""
        return self.attempts == math.inf and self.deadline is False

    @property
    def everything(self) -> bool:
        """True if it retries every Exception."""
        return (
            self.errors is not None
            and not self.has_predicate
            and any(name in ("Exception", "BaseException") for name in self.errors)
        )


def attempt_of(use: RetryUse) -> list[ast.stmt]:
    """Return the code of one attempt: the bodies of `try` in a loop that has them, else all that is repeated."""
    return [statement for attempt in use.tries for statement in attempt.body] or use.region


class RetryUses(list[RetryUse]):
    """The retries of a module, also by what they repeat: a file may have very many, so none is looked for twice."""

    def __init__(self, uses: list[RetryUse]) -> None:
        super().__init__(uses)
        self.by_function = {id(use.function): use for use in uses if use.function is not None and use.region}
        self.by_loop = {id(use.loop): use for use in uses if use.loop is not None}


def grows_to(first: float, multiplier: float, attempts: float | None) -> float | None:
    """Return the longest wait of an exponential backoff without a cap, None if the number of attempts is unknown."""
    if attempts is None:
        return None
    try:
        return math.inf if attempts > 64 else float(first) * float(multiplier) ** max(attempts - 2, 0)
    except OverflowError:
        return math.inf


def seconds(value: object, default: float) -> float:
    """Return a constant as a number, else the default."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else default
