"""Shared parts of targets that are Python libraries: the errors that a policy repeats, and an import with a hint."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from forbear.core.verdict import Kind
from forbear.export.outline import Outline
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception

_TRANSIENT = ("ConnectionError", "TimeoutError", "socket.gaierror")
_REDIS_NOT_EXECUTED = tuple(
    f"redis.exceptions.{name}Error" for name in ("BusyLoading", "ClusterDown", "MasterDown", "ReadOnly", "TryAgain")
)
_REDIS_TRANSIENT = ("redis.exceptions.ConnectionError", "redis.exceptions.TimeoutError", *_REDIS_NOT_EXECUTED[1:])


@contextmanager
def needed(target: str, package: str) -> Generator[None]:
    """Add an installation hint to an ImportError of the block; `package` is the name on PyPI."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f'forbear.export.{target} needs {package}; install it with: pip install "{package}", '
            f'or take the text that forbear.export.source("{target}", policy) makes without it'
        ) from error


@dataclass(frozen=True, slots=True)
class Errors:
    """Exception types by their dotted names (builtins by plain ones), and HTTP statuses if the service has some."""

    types: tuple[str, ...]
    statuses: tuple[int, ...] = ()

    @property
    def imports(self) -> list[str]:
        """The import statements that the names need."""
        modules = {name.rpartition(".")[0] for name in self.types if "." in name}
        return [f"import {module}" for module in sorted(modules)]

    @property
    def text(self) -> str:
        """The types as a tuple in source text."""
        return f"({', '.join(self.types)}{',' * (len(self.types) == 1)})"


def source_errors(outline: Outline) -> Errors:
    """Return the errors that a policy repeats, for source text.

    Raises TypeError for a user's function in `on`, which has no source text here.
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


def error_types(outline: Outline) -> tuple[type[Exception], ...]:
    """Return the errors that a policy repeats as exception types."""
    types = _listed(outline.policy)
    if types is not None:
        outline.says("errors")
        return types if outline.policy.repeatable else ()
    return tuple(_imported(name) for name in source_errors(outline).types)


class Retryable:
    """A predicate that asks the policy whether to repeat after an error. It pickles if the policy does."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __call__(self, error: BaseException) -> bool:
        """Return True if the call was not executed, or if the error is transient and the policy may repeat the call."""
        if not isinstance(error, Exception):
            return False
        kind = self.policy.verdict_of_error(error).kind
        return kind is Kind.NOT_EXECUTED or (kind is Kind.TRANSIENT and self.policy.repeatable)


def warn_about_safety(outline: Outline) -> None:
    """Record the loss of safety for targets that repeat a function, whose operation they cannot see."""
    policy = outline.policy
    if policy.service is None and policy.on is not verdict_of_exception:
        outline.says("safety")  # the target repeats the same calls as the policy
    elif policy.repeatable:
        outline.warns("safety", "every call is repeated, so use it only for operations that are safe to execute twice")
    else:
        outline.warns(
            "safety",
            "the target does not see the operation, so no call is repeated that may have been executed; "
            "for operations that are safe to execute twice, export the policy as repeatable",
        )


def _listed(policy: Policy) -> tuple[type[Exception], ...] | None:
    """Return the types in a policy's `on`, None if it is a judge."""
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
        kind: type[Exception] = getattr(import_module(module or "builtins"), attribute)
        return kind
