"""Decorated functions know their policy: `policy_of` returns it, `with_policy` returns the function under another."""

from types import MethodType

from forbear.run.functions import MARK, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, Unpack

    from forbear.policy import Policy
    from forbear.run.derive import Changes

    F = TypeVar("F", bound=Callable[..., Any])


def policy_of(function: "Callable[..., Any]") -> "Policy":
    """Return the policy of a decorated function or method, the outermost one of several.

    Raises TypeError for a function that no policy decorates. `function.policy` is the same for code without a type
    checker.
    """
    policy: Policy = _marked(function).policy
    return policy


def with_policy(function: "F", policy: "Policy | None" = None, /, **changes: "Unpack[Changes]") -> "F":
    """Return a decorated function under another policy, with the same signature and type.

    `policy` replaces the function's own one. The `changes` are keywords of `forbear.retry`, such as `timeout=5`: they
    change `policy`, or else the own one. A bound method stays bound. The function itself stays as it is. Raises
    TypeError for a function that no policy decorates, and if another decorator is around the policy.
    """
    changed = _marked(function).with_policy(policy, **changes)
    bound: object = getattr(function, "__self__", None)
    return changed if bound is None else MethodType(changed, bound)  # type: ignore[return-value]


def _marked(function: "Any") -> "Any":
    inner: Any = getattr(function, "__func__", function)
    code: object = getattr(inner, MARK, None)
    if code is None:
        raise TypeError(f"{name_of(function)} is not decorated by a policy; decorate it: @forbear.retry(OSError)")
    if code is not getattr(inner, "__code__", None):
        raise TypeError(
            f"{name_of(function)} has another decorator around its policy, which would get lost; "
            "make the policy its outermost decorator"
        )
    return inner
