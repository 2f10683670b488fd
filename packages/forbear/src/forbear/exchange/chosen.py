"""The user's choice for an adapter: a policy, or changes to the recommended policy of each service."""

from forbear.core.check import refuse_unknown
from forbear.core.record import Record
from forbear.policy import Policy
from forbear.run.answers import TYPES
from forbear.run.derive import KEYWORDS
from forbear.run.plan import OPTIONS
from forbear.services import rfc9110

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_NO_KEYWORDS = {"on", "service", "others", *(name for name, option in OPTIONS.items() if option.of_functions)}

KEYWORDS_OF_CLIENTS = tuple(name for name in KEYWORDS if name not in _NO_KEYWORDS)
"""The keywords of `forbear.retry` that adapters take, too: limits, waits and listeners."""


class PolicyChanges(Record):
    """Changes to the recommended policies of services, such as `{"attempts": 3}`: each keeps its table.

    `sample` is the policy for hosts that nobody knows, with the changes. TypeError or ValueError for wrong values.
    """

    __slots__ = ("options", "sample", "_known")

    options: "Mapping[str, Any]"
    sample: Policy
    _known: dict[int, tuple[Policy, Policy]]

    def __init__(self, options: "Mapping[str, Any]") -> None:
        self._set(options=options, sample=rfc9110.policy.with_changes(**options), _known={})

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return ("options",)  # the others follow from it

    def of(self, recommended: Policy) -> Policy:
        if not self.options:
            return recommended
        known = self._known.get(id(recommended))
        if known is None:
            known = self._known[id(recommended)] = recommended, recommended.with_changes(**self.options)
        return known[1]


NO_CHANGES = PolicyChanges({})


def choose(
    adapter: str, policy: "Any", options: "Mapping[str, Any]", own: tuple[str, ...] = ()
) -> tuple["Any", PolicyChanges]:
    """Return the policy, with its changes made, or the changes that an adapter's user chose by keywords.

    TypeError for keywords that are neither of KEYWORDS_OF_CLIENTS nor among the adapter's `own` ones, which it lists,
    too.
    """
    if not options:
        return policy, NO_CHANGES
    if "on" in options:
        raise TypeError(
            f"`{adapter}` takes no `on`, because the tables decide what is retried; "
            f"pass a policy if you must: {adapter}(forbear.retry(on=...))"
        )
    refuse_unknown(adapter, (name for name in options if name not in KEYWORDS_OF_CLIENTS), own + KEYWORDS_OF_CLIENTS)
    if policy is None:
        return None, PolicyChanges(options)
    return policy.with_changes(**options) if isinstance(policy, Policy) else policy, NO_CHANGES  # refused later


def refuse_unraised(policy: Policy | None, raised: tuple[type[Exception], ...]) -> None:
    """Raise TypeError for a policy of which `on` has only types of errors that a client never raises.

    `raised` are the bases of those that it raises; () for a client that may raise anything.
    """
    if policy is None or not raised:
        return
    types: list[type[Exception]] = []
    for each in (policy, *policy.others):
        on: Any = each.on
        if not isinstance(on, TYPES):
            return
        types += on if isinstance(on, tuple) else (on,)
    if any(issubclass(kind, raised) for kind in types):
        return
    if not any(issubclass(kind, tuple(types)) for kind in _with_subclasses(raised)):
        library, names = _library(raised[0]), " or ".join(kind.__qualname__ for kind in types)
        raise TypeError(
            f"`policy` must retry errors of {library}, and none that it raises here is of the type {names}: "
            "leave `on` out and pass the limits alone (attempts=3), so that the tables decide, or write "
            "forbear.retry(forbear.transient, attempts=3)"
        )


def _with_subclasses(kinds: tuple[type[Exception], ...]) -> "Iterator[type[Exception]]":
    """Yield classes of errors, and the subclasses that their own libraries have of them."""
    for kind in kinds:
        yield kind
        yield from _with_subclasses(tuple(sub for sub in kind.__subclasses__() if _library(sub) == _library(kind)))


def _library(kind: type) -> str:
    return kind.__module__.partition(".")[0]
