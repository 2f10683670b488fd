"""Which errors of Python a policy repeats, by the names under which a program that knows no forbear imports them."""

from dataclasses import dataclass
from typing import Any

from forbear.core.verdict import Kind
from forbear.export.library import needed
from forbear.export.outline import Outline
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception

_TRANSIENT = ("ConnectionError", "TimeoutError", "socket.gaierror")
_REDIS_NOT_EXECUTED = tuple(
    f"redis.exceptions.{name}Error" for name in ("BusyLoading", "ClusterDown", "MasterDown", "ReadOnly", "TryAgain")
)
_REDIS_TRANSIENT = ("redis.exceptions.ConnectionError", "redis.exceptions.TimeoutError", *_REDIS_NOT_EXECUTED[1:])


@dataclass(frozen=True, slots=True)
class Errors:
    """Types by their dotted names (those of builtins plain), and HTTP statuses where the policy's service has some."""

    types: tuple[str, ...]
    statuses: tuple[int, ...] = ()

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules that the names need."""
        return tuple(sorted({name.rpartition(".")[0] for name in self.types if "." in name}))

    @property
    def text(self) -> str:
        """The types as a tuple in source text."""
        return f"({', '.join(self.types)}{',' * (len(self.types) == 1)})"


def of(outline: Outline) -> Errors:
    """The errors for source text, which is all that a policy's judge comes to without itself.

    Raises TypeError for a judge of the user's own: it has no other text than its own.
    """
    policy = outline.policy
    if policy.service is not None or policy.on is verdict_of_exception:
        outline.differs("errors", "errors: by type and status alone; wrapped and rarer ones are not known")
    if isinstance(policy.on, ErrorVerdicts):
        return Errors(_TRANSIENT, outline.statuses) if policy.repeatable else Errors(())
    if policy.on is verdict_of_exception:
        return Errors(_REDIS_TRANSIENT if policy.repeatable else _REDIS_NOT_EXECUTED)
    types = _listed(policy)
    if types is None:
        raise TypeError(
            f"`policy.on` must be exception types or the judge of a service to be written as source text, got "
            f"{policy.on!r}; name types with `with_on`, or use the function of forbear.export that makes the object"
        )
    outline.says("errors")
    return Errors(tuple(_dotted(kind) for kind in types) if policy.repeatable else ())


def types_of(outline: Outline) -> tuple[type[Exception], ...]:
    """The same as types, for objects that take nothing else."""
    types = _listed(outline.policy)
    if types is not None:
        outline.says("errors")
        return types if outline.policy.repeatable else ()
    return tuple(_imported(name) for name in of(outline).types)


class Retryable:
    """Whether an error is repeated: the policy's own judge, as a callable that pickles where the policy does."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __call__(self, error: BaseException) -> bool:
        """True for what certainly was not executed, and for what is transient if the policy may repeat it."""
        if not isinstance(error, Exception):
            return False
        kind = self.policy.judge_error(error).kind
        return kind is Kind.NOT_EXECUTED or (kind is Kind.TRANSIENT and self.policy.repeatable)


def tell_safety(outline: Outline) -> None:
    """Say what becomes of safety where a function is repeated, for nobody sees its operation."""
    policy = outline.policy
    if policy.service is None and policy.on is not verdict_of_exception:
        outline.says("safety")  # nothing is repeated but what the policy would repeat
        return
    if policy.repeatable:
        outline.warns("safety", "every call is repeated, so use it for operations alone that may be executed twice")
    else:
        outline.warns(
            "safety",
            "nobody sees the operation here, so nothing is repeated that may have been executed; "
            "for operations that may be executed twice, export it as repeatable",
        )


def _listed(policy: Policy) -> tuple[type[Exception], ...] | None:
    """The types that a policy names, None where it asks a judge."""
    on: Any = policy.on
    if isinstance(on, type):
        on = (on,)
    return on if isinstance(on, tuple) else None  # pyright: ignore[reportUnknownVariableType] - checked by Policy


def _dotted(kind: type) -> str:
    if "." in kind.__qualname__ or kind.__module__ == "__main__":
        raise ValueError(
            f"`policy.on` must list types from the top of a module to be written as source text, got {kind!r}; "
            "define it there, or use the function of forbear.export that makes the object"
        )
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _imported(name: str) -> type[Exception]:
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    with needed("celery", module.partition(".")[0]):
        found: type[Exception] = getattr(import_module(module or "builtins"), attribute)
    return found
