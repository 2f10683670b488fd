"""The values that shell completion offers: profiles, services and targets, read from the registries.

Nothing is imported before the user asks for a completion.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def offer(module: str, attribute: str) -> Completion:
    """Return the function for `shell_complete` that offers names of a module, by a function or a collection in it."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names: Any = getattr(import_module(module), attribute)
        listed = cast("Iterable[str]", names() if callable(names) else names)
        return [CompletionItem(name) for name in listed if name.startswith(incomplete)]

    return complete


def complete_path(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Leave a path to the shell; offer nothing for an address in the cloud, which only a request could complete."""
    return [] if "://" in incomplete else [CompletionItem(incomplete, type="file")]


complete_profile = offer("forbear.services.policies", "policy_names")
complete_service = offer("forbear.services.registry", "names")
complete_target = offer("forbear.export", "TARGETS")
