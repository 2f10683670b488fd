"""The values that shell completion offers: profiles, services and targets, read from the registries.

Nothing is imported before the user asks for a completion.
"""

from collections.abc import Callable, Iterable, Sequence

import click
from click.shell_completion import CompletionItem

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def offering(names: Callable[[], Iterable[str]]) -> Completion:
    """Return the function for `shell_complete` that offers the names that begin like the incomplete word."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names() if name.startswith(incomplete)]

    return complete


def _profiles() -> Sequence[str]:
    from forbear.services.policies import policy_names

    return tuple(policy_names())


def _services() -> Sequence[str]:
    from forbear.services import registry

    return tuple(registry.names())


def _targets() -> Sequence[str]:
    from forbear import export

    return tuple(export.TARGETS)


def complete_path(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave a path to the shell; offer nothing for an address in the cloud, which only a request could complete."""
    return [] if "://" in incomplete else [CompletionItem(incomplete, type="file")]


complete_profile = offering(_profiles)
complete_service = offering(_services)
complete_target = offering(_targets)
