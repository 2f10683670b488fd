"""Shared parts of targets that are Python libraries: the errors that a policy repeats, and an import with a hint."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from forbear.core.dataclass import dataclass
from forbear.core.verdict import Kind
from forbear.export.outline import Outline
from forbear.judges.functions import may_repeat
from forbear.policy import Policy
from forbear.services.errors import ErrorVerdicts
from forbear.services.redis.errors import verdict_of_exception

_TRANSIENT = ("ConnectionError", "TimeoutError", "socket.gaierror")
_REDIS_NOT_EXECUTED = tuple(
    f"redis.exceptions.{name}Error" for name in ("BusyLoading", "ClusterDown", "MasterDown", "ReadOnly", "TryAgain")
)
_REDIS_TRANSIENT = ("redis.exceptions.ConnectionError", "redis.exceptions.TimeoutError", *_REDIS_NOT_EXECUTED[1:])


@contextmanager
def importing(target: str, package: str) -> Generator[None]:
    """A context in which an ImportError becomes one that says what to install: the `package` that `target` needs."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f'forbear.export.{target} needs {package}; install it with: pip install "{package}", '
            f'or take the text that forbear.export.source("{target}", policy) makes without it'
        ) from error


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors to repeat: exception types by their dotted names (builtins by plain ones), and HTTP statuses."""

    types: tuple[str, ...]
    statuses: tuple[int, ...] = ()

    @property
    def imports(self) -> list[str]:
        """The lines `import MODULE` that the names in `types` need, sorted, and an empty line after them."""
        modules = {name.rpartition(".")[0] for name in self.types if "." in name}
        return [f"import {module}" for module in sorted(modules)] + [""] * bool(modules)

    @property
    def text(self) -> str:
        """The names in `types` as a tuple in Python source: "(A, b.C)"."""
        return f"({', '.join(self.types)}{',' * (len(self.types) == 1)})"


def source_errors(outline: Outline) -> Errors:
    """Return the errors to repeat, for source text, and record losses; TypeError or ValueError if they have no name."""
    policy = outline.policy
    if policy.service is not None or policy.on is verdict_of_exception:
        outline.differs("errors", "by type and status alone; wrapped and rarer ones are not known")
    if isinstance(policy.on, ErrorVerdicts):
        return Errors(_TRANSIENT, outline.statuses) if policy.repeats_calls else Errors(())
    if policy.on is verdict_of_exception:
        return Errors(_REDIS_TRANSIENT if policy.repeats_calls else _REDIS_NOT_EXECUTED)
    types = _types_in(policy)
    if types is None:
        raise TypeError(
            "`policy.on` must be exception types or the judge of a service to be written as source text, got "
            f"{policy.on!r}; name types with `with_on`, or use the function of forbear.export that makes the object"
        )
    outline.says("errors")
    return Errors(tuple(_name_of(kind) for kind in types) if policy.repeats_calls else ())


def error_types(outline: Outline) -> tuple[type[Exception], ...]:
    """Return the types in `on`, or those of `source_errors`, imported; TypeError for a user's function."""
    types = _types_in(outline.policy)
    if types is not None:
        outline.says("errors")
        return types if outline.policy.repeats_calls else ()
    return tuple(_import(name) for name in source_errors(outline).types)


class Retryable:
    """A predicate on an error: True if the policy's verdict, and what the error shows, allow another attempt.

    It pickles if the policy does.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def __call__(self, error: BaseException) -> bool:
        """Return whether an error allows a repeat; False for what is no `Exception`."""
        if not isinstance(error, Exception):
            return False
        kind = self.policy.verdict_of_error(error).kind
        if kind is not Kind.TRANSIENT:
            return kind is Kind.NOT_EXECUTED
        return self.policy.repeats_calls and (self.policy.repeatable is True or may_repeat(error))


def warn_about_safety(outline: Outline, *, reads_errors: bool = False) -> None:
    """Record the policy's safety for a target that repeats a function, whose operation it cannot see.

    `reads_errors` is true for a target that asks a `Retryable`.
    """
    policy = outline.policy
    if policy.service is None and policy.on is not verdict_of_exception:
        if reads_errors or policy.repeatable is not None:
            outline.says("safety")  # the target repeats the same calls as the policy
    elif policy.repeats_calls:
        outline.warns("safety", "every call is repeated, so use it only for operations that are safe to execute twice")
    else:
        outline.warns(
            "safety",
            "the target does not see the operation, so no call is repeated that may have been executed; "
            "for operations that are safe to execute twice, export the policy as repeatable",
        )


def _types_in(policy: Policy) -> tuple[type[Exception], ...] | None:
    """Return the exception types in a policy's `on` as a tuple, None if it is a function or a service's judge."""
    on: Any = policy.on
    if isinstance(on, type):
        on = (on,)
    return on if isinstance(on, tuple) else None  # pyright: ignore[reportUnknownVariableType] - checked by Policy


def _name_of(kind: type) -> str:
    if "." in kind.__qualname__ or kind.__module__ == "__main__":
        raise ValueError(
            f"`policy.on` must list types from the top of a module to be written as source text, got {kind!r}; "
            "define it there, or use the function of forbear.export that makes the object"
        )
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _import(name: str) -> type[Exception]:
    from importlib import import_module

    module, _, attribute = name.rpartition(".")
    with importing("celery", module.partition(".")[0]):
        kind: type[Exception] = getattr(import_module(module or "builtins"), attribute)
        return kind
