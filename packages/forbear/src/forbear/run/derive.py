"""`Derivable`: the `with_…` methods of policies, which return changed copies."""

from forbear.core import check
from forbear.core.check import refuse_unknown
from forbear.core.limits import Limits
from forbear.run.plan import DEFAULT_BACKOFF, OPTIONS, RetryPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from typing import Any, Self, Unpack

    from forbear.core.events import Event
    from forbear.core.limits import Default
    from forbear.core.protocols import Answer, Backoff, On
    from forbear.run.budget import Budget
    from forbear.run.plan import NamedOptions, SharedOptions

    Seconds = float | timedelta

    class ClientOptions(SharedOptions, total=False):
        """The keywords of `retry()` that adapters of clients take, too."""

        attempts: int | Default | None
        timeout: Seconds | Default | None
        backoff: Backoff
        clamp: bool
        max_retry_after: Seconds
        unlimited: bool

    class RetryOptions(ClientOptions, NamedOptions, total=False):
        """The keywords of `retry()` but `on_give_up`, which changes the type of what a function returns."""

        on: On

    class Changes(RetryOptions, total=False):
        """The keywords of `retry()`."""

        on_give_up: Any


KEYWORDS = ("on", "attempts", "timeout", "backoff", *OPTIONS, "clamp", "max_retry_after", "unlimited")
"""The keywords of `retry()`, and `service` and `others`, which are for the policies of services."""

SHOWN = tuple(name for name in KEYWORDS if name not in ("service", "others"))
"""The keywords of `retry()` that errors list."""

_LIMITS = frozenset(Limits.__slots__) - {"chosen"}
_OF_EACH = frozenset((*_LIMITS, "backoff", *(name for name, option in OPTIONS.items() if option.of_each)))
"""The keywords of `retry()` that each of several joined policies has for itself; `on` is one, too."""


class Derivable(RetryPlan):
    """The base of `Policy`: its methods return copies with other fields.

    What each of several policies joined by `|` has for itself, such as limits and backoff, is changed in all of them.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the call of `forbear.retry` that makes the policy, without the arguments that have their defaults."""
        from forbear.run.answers import AnyOf  # `import forbear` does not load it

        on: Any = self.on
        listed: list[Any] = [on]
        if isinstance(on, AnyOf):
            listed = [*on.types, *on.judges]
        elif isinstance(on, tuple):
            listed = [*on]  # pyright: ignore[reportUnknownArgumentType]
        shown = [getattr(kind, "__qualname__", None) or repr(kind) for kind in listed]
        shown += self.limits._show_arguments()
        options = [("backoff", DEFAULT_BACKOFF), *((name, option.default) for name, option in OPTIONS.items())]
        for name, default in options:
            value = getattr(self, name)
            if name not in ("service", "others") and value != default:
                shown.append(f"{name}={value!r}")
        return " | ".join((f"retry({', '.join(shown)})", *map(repr, self.others)))

    if not TYPE_CHECKING:  # type checkers refuse `with policy` by themselves

        def __enter__(self):
            """Raise TypeError always: a block runs again only in a loop."""
            raise TypeError(
                "a policy is no block by itself, and a `with` cannot run its block twice; "
                "write `for attempt in forbear.retry(...):` and in it `with attempt:` (async: `async for`)"
            )

        __exit__ = __aenter__ = __aexit__ = __enter__

    def with_changes(self, **changes: "Unpack[Changes]") -> "Self":
        """Return a copy with `changes`, which are keywords of `forbear.retry`, such as `attempts=3, timeout=5`.

        Raises ValueError for another `on` of policies joined by `|`.
        """
        fields: dict[str, Any] = dict(changes)
        refuse_unknown("retry", [name for name in fields if name not in KEYWORDS], SHOWN)
        if not self.others:
            return self._changed(fields)
        if "on" in fields:
            raise ValueError(
                "`on` of policies joined by | must be set before they are joined, because each has one of its own: "
                "write left.with_on(...) | right"
            )
        of_each = {name: value for name, value in fields.items() if name in _OF_EACH}
        return self._changed(fields).replace(others=tuple(other._changed(of_each) for other in self.others))

    def _changed(self, fields: "dict[str, Any]") -> "Self":
        limits = {name: fields[name] for name in fields if name in _LIMITS}
        if limits:
            fields = {name: fields[name] for name in fields if name not in limits}
            fields["limits"] = self.limits.replace(**limits)
        return self.replace(**fields)

    def _change_each(self, **fields: "Any") -> "Self":
        """Return a copy with other fields in this policy and in those that are joined to it."""
        if self.others:
            fields["others"] = tuple(other.replace(**fields) for other in self.others)
        return self.replace(**fields)

    def with_on(self, on: "On") -> "Self":
        """Return a copy that retries the errors that `on` accepts; `on` as for `forbear.retry`.

        Raises ValueError for policies joined by `|`.
        """
        return self.with_changes(on=on)

    def with_attempts(self, attempts: int | None) -> "Self":
        """Return a copy with another limit of attempts, the first call included; None for no limit.

        Raises ValueError if there is then no timeout either, unless the policy is `unlimited`.
        """
        return self.with_changes(attempts=attempts)

    def with_timeout(self, timeout: "Seconds | None") -> "Self":
        """Return a copy with another timeout for the whole run, in seconds; None for no limit.

        Raises ValueError if there is then no limit of attempts either, unless the policy is `unlimited`.
        """
        return self.with_changes(timeout=timeout)

    def with_limits(self, limits: Limits) -> "Self":
        """Return a copy with `limits` in place of all its limits: attempts, timeout, clamp and the others."""
        return self._change_each(limits=limits)

    def with_preset(self, name: str) -> "Self":
        """Return a copy with the attempts, the timeout and the backoff of a preset.

        The presets are "interactive", "mobile", "ci" and "batch"; `forbear.policies.PRESETS` has their figures.
        Raises ValueError for any other name.
        """
        from forbear.core.presets import preset  # few programs use one

        chosen = preset(name)
        limits = chosen.limits
        return self.with_changes(attempts=limits.attempts, timeout=limits.timeout, backoff=chosen.backoff)

    def with_attempt_timeout(self, attempt_timeout: "Seconds | None") -> "Self":
        """Return a copy with another timeout for one attempt, in seconds; None for no limit.

        Only async code can be run with one.
        """
        return self.replace(attempt_timeout=attempt_timeout)

    def with_backoff(self, backoff: "Backoff") -> "Self":
        """Return a copy with another backoff, an object whose `delay` method returns the seconds before each retry."""
        return self._change_each(backoff=backoff)

    def with_on_result(self, on_result: "Callable[[Any], Answer] | None") -> "Self":
        """Return a copy with another judge of returned values: `on_result` as for `forbear.retry`, None for none."""
        return self.replace(on_result=on_result)

    def with_on_event(self, on_event: "Callable[[Event], object] | None") -> "Self":
        """Return a copy that notifies another listener; None for no listener of its own."""
        return self.replace(on_event=on_event)

    def with_repeatable(self, repeatable: bool | None) -> "Self":
        """Return a copy with another `repeatable`, as for `forbear.retry`: True, False or None.

        The policies of services have None, and do not repeat a function whose outcome is unknown: they cannot see its
        operation. With True they repeat it, too.
        """
        return self._change_each(repeatable=repeatable)

    def with_retry_not_found(self, retry_not_found: bool = True) -> "Self":
        """Return a copy that does or does not retry 404 and NOT_FOUND, an option of IAM's retry page.

        Reads of IAM and Resource Manager are eventually consistent, so a new resource may not be found yet. A 404 that
        may mean that an earlier attempt worked, as for a delete, stays permanent. Raises TypeError for a policy of
        another service, or of none.
        """
        check.flag("retry_not_found", retry_not_found)
        service: Any = self.service
        if not hasattr(service, "retry_not_found"):
            owner = "no service" if service is None else service.name
            raise TypeError(
                f"the policy must be one of IAM or Resource Manager, such as iam.policy, got one of {owner}"
            )
        changed = service.replace(retry_not_found=retry_not_found)
        on: Any = self.on
        if getattr(on, "service", None) == service:  # it judges the errors of functions
            on = on.replace(service=changed)
        return self.replace(on=on, service=changed)

    def with_budget(self, budget: "Budget | None") -> "Self":
        """Return a copy that shares another retry budget; None for no budget."""
        return self.replace(budget=budget)

    def with_name(self, name: str | None) -> "Self":
        """Return a copy with another name for reports and events; None for the function's own name."""
        return self.replace(name=name)


def check_joined(left: RetryPlan, right: RetryPlan) -> None:
    """Raise ValueError if `right` sets what `left | right` takes from `left` alone, to another value."""
    for name, option in OPTIONS.items():
        value = getattr(right, name)
        if not option.of_each and value != option.default and value != getattr(left, name):
            raise ValueError(
                f"`{name}` of policies joined by | must be set in the left one, got {value!r} in the right"
            )
