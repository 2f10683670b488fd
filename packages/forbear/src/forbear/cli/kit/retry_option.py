"""`--retry`: one option by which a command that is not about retries takes a policy, and changes of it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from forbear.cli.kit import values
from forbear.cli.kit.completion import complete_profile
from forbear.core.backoff import JITTERS

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:
    _ChangesType = click.ParamType[dict[str, Any]]
else:
    _ChangesType = click.ParamType  # no generic class before click 8.4

_KEYS: Mapping[str, Callable[[str], Any]] = {
    "attempts": values.count_or_none,
    "timeout": values.duration_or_none,
    "initial": values.duration,
    "maximum": values.duration,
    "multiplier": float,
    "jitter": str,
    "constant": values.duration_from_zero,
}
"""The keys, as the options of `policy_options` are called, with the functions that read their values."""


class _Changes(_ChangesType):
    """A profile's name, changes such as attempts=5, or both, with commas between them."""

    name = "retry"

    def __init__(self, profile: str) -> None:
        self._profile = profile

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        changes: dict[str, Any] = {"profile": self._profile, **dict.fromkeys(_KEYS)}
        for number, part in enumerate(str(value).split(",")):
            key, equals, text = (word.strip() for word in part.partition("="))
            if not equals and number == 0:
                changes["profile"] = key
            elif key not in _KEYS or not equals:
                known = ", ".join(_KEYS)
                self.fail(f"{part!r} is no change of a policy; write a key and a value, such as attempts=5 ({known})")
            elif changes[key] is not None:
                self.fail(f"{key} is there twice; leave one of them out")
            else:
                changes[key] = self._read(key, text)
        return changes

    def _read(self, key: str, text: str) -> Any:
        if key == "jitter" and text not in JITTERS:
            self.fail(f"jitter must be one of {', '.join(JITTERS)}, got {text!r}")
        try:
            return _KEYS[key](text)
        except click.BadParameter as error:
            self.fail(f"{key}: {error.message}")
        except ValueError:
            self.fail(f"{key} must be a number, got {text!r}")


class RetryOption(click.Option):
    """The option `--retry`: a command gets its keys as parameters, which errors name as `spelled`."""

    spelled: Mapping[str, str] = {"profile": "--retry NAME"} | {key: f"--retry {key}=VALUE" for key in _KEYS}

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Set a parameter of the command for each key."""
        changes, args = super().handle_parse_result(ctx, opts, args)
        ctx.params.update(changes)
        return changes, args


def retry_option(profile: str) -> Callable[[F], F]:
    """Return the decorator that adds `--retry` to a command whose default policy is called `profile`."""
    return click.option(
        "--retry",
        cls=RetryOption,
        type=_Changes(profile),
        default=profile,
        show_default=True,
        expose_value=False,
        metavar="POLICY",
        help="A policy of `forbear schedule`, changes of it such as attempts=5,timeout=60, or both.",
        shell_complete=_complete,
    )


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the profiles and the keys; after a comma, the keys alone."""
    before, comma, last = incomplete.rpartition(",")
    keys = [CompletionItem(f"{before}{comma}{key}=") for key in _KEYS if key.startswith(last)]
    return keys if comma else [*complete_profile(ctx, param, incomplete), *(keys if incomplete else [])]
