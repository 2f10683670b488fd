"""Find the policy that a scenario names, and change its limits and waits as the scenario says."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from forbear import Exponential, Policy
from forbear.adapters import AmbiguousPolicyName, find_policy, is_mapping, policy_names
from forbear_simulate.scenario.fields import ScenarioError, duration, plain_number, refuse

_TIME = 'a time with a unit, such as "10s"'

LIMITS: dict[str, tuple[Callable[[object], Any], str]] = {
    "attempts": (plain_number, "a whole number or none"),
    "timeout": (duration, f"{_TIME}, or none"),
}
"""The limits that a table may change: how each one is read, and what it must be."""

WAITS: dict[str, tuple[Callable[[object], Any], str]] = {
    "initial": (duration, _TIME),
    "multiplier": (plain_number, "a number"),
    "maximum": (duration, _TIME),
    "jitter": (lambda raw: raw, "a word"),
    "spread": (duration, _TIME),
}
"""The parameters of the backoff that a table may change, as in `LIMITS`."""


def policy_of(key: str, raw: Any) -> Policy:
    """Return the policy of a name, or of a table: its `name` (default "default"), then changes of limits and waits.

    The changes are `attempts` and `timeout` of `forbear.Limits`, and the parameters of `forbear.Exponential`. Raises
    ScenarioError, with `key`, for anything else.
    """
    if not is_mapping(raw):
        return policy_named(key, raw)
    known = ("name", *LIMITS, *WAITS)
    unknown = next((name for name in raw if name not in known), None)
    if unknown is not None:
        refuse_key(f"{key}.{unknown}", raw[unknown], known)
    policy = policy_named(f"{key}.name", raw.get("name", "default"))
    limits = {
        name: None if raw[name] == "none" else _read(f"{key}.{name}", raw[name], *reader)
        for name, reader in LIMITS.items()
        if name in raw
    }
    waits = {name: _read(f"{key}.{name}", raw[name], *reader) for name, reader in WAITS.items() if name in raw}
    backoff = policy.backoff if isinstance(policy.backoff, Exponential) else Exponential()
    try:
        policy = policy.with_limits(policy.limits.replace(**limits))
        return policy.with_backoff(backoff.replace(**waits)) if waits else policy
    except (TypeError, ValueError) as error:  # "`attempts` must be 1 or more, got 0"
        raise ScenarioError(f"{error} in `{key}`; change that value") from None


def policy_named(key: str, name: object) -> Policy:
    """Return the policy called `name`, as in `forbear.services.policies`: "default", a preset, a service or a profile.

    Raises ScenarioError, with `key`, if there is none.
    """
    try:
        policy = find_policy(name) if isinstance(name, str) else None
    except AmbiguousPolicyName as error:
        refuse(key, "the name of one policy", name, f"write one of {', '.join(error.choices)}")
    if policy is None:
        refuse(key, "the name of a policy", name, f"write one of {', '.join(policy_names())}")
    return policy


def refuse_key(key: str, value: object, known: tuple[str, ...]) -> None:
    """Raise the ScenarioError for a key that is none of the `known` ones, with the nearest of them."""
    near = get_close_matches(key.rpartition(".")[2], known, 1)
    cure = f"did you mean {near[0]}?" if near else "remove it"
    refuse(key, f"one of the keys {', '.join(sorted(known))}", value, cure)


def _read(key: str, raw: object, read: Callable[[object], Any], rule: str) -> Any:
    value = read(raw)
    if value is None:
        refuse(key, rule, raw, "correct the value")
    return value
