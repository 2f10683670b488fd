"""The names of policies on the command line: the options for one, and what they stand for."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from forbear.answers.profile import ProfileChoice
from forbear.cli.kit.completion import complete_profile
from forbear.policy import Policy
from forbear.services.policies import DEFAULT_PROFILE, RECOMMENDED

__all__ = ["DEFAULT_PROFILE", "RECOMMENDED", "find_named_policy", "profile_option", "retry_not_found_option"]

F = TypeVar("F", bound=Callable[..., Any])


def profile_option(default: str, text: str) -> Callable[[F], F]:
    """Return the decorator that adds `--profile` to a command; `text` is its help."""
    return click.option(
        "--profile", default=default, show_default=True, metavar="NAME", help=text, shell_complete=complete_profile
    )


def retry_not_found_option(function: F) -> F:
    """Add `--retry-not-found` to a command."""
    return click.option("--retry-not-found", is_flag=True, help="Retry 404, too: an option of the retry page of IAM.")(
        function
    )


def find_named_policy(name: str, service: str | None = None) -> Policy:
    """Return the policy called `name`, for `service` as in `ProfileChoice.policy`; raise NoAnswer if there is none."""
    return ProfileChoice(name).policy(service)
