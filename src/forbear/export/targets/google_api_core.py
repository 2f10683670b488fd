"""google-api-core: the `retry=` object of Google's Python clients. It never sees the request."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from forbear.core.decide import show
from forbear.export import errors
from forbear.export.exported import Exported
from forbear.export.library import needed
from forbear.export.outline import Outline
from forbear.policy import Policy

_LOST = tuple(f"requests.exceptions.{name}" for name in ("ChunkedEncodingError", "ConnectionError", "Timeout"))

if TYPE_CHECKING:
    from google.api_core.retry import Retry


def google_api_core(policy: Policy) -> "Exported[Retry]":
    """A `google.api_core.retry.Retry` that asks the policy which errors to repeat."""
    with needed("google_api_core", "google-api-core"):
        from google.api_core.retry import Retry

    outline = Outline(policy)
    outline.says("errors")
    parameters = _parameters(outline)
    retry = Retry(predicate=errors.Retryable(policy), **parameters)
    return Exported(retry, outline.losses)


def source(policy: Policy) -> Exported[str]:
    """The same as source text that stands alone."""
    outline = Outline(policy)
    found = errors.of(outline)
    if found.statuses:
        found = replace(found, types=(*found.types, *_LOST))
    parameters = _parameters(outline)
    imports = [f"import {module}" for module in found.imports]
    names = "exceptions, retry" if found.statuses else "retry"
    lines = [*imports, *[""] * bool(imports), f"from google.api_core import {names}", "", ""]
    lines.append("def is_transient(error: Exception) -> bool:")
    if found.statuses:
        lines += [
            "    if isinstance(error, exceptions.GoogleAPICallError):",
            f"        return error.code in {found.statuses}",
        ]
    lines += [
        f"    return isinstance(error, {found.text})",
        "",
        "",
        "RETRY = retry.Retry(",
        "    predicate=is_transient,",
        *(f"    {name}={value!r}," for name, value in parameters.items()),
        ")",
    ]
    return Exported("\n".join([*lines, ""]), outline.losses)


def _parameters(outline: Outline) -> dict[str, Any]:
    waits = outline.waits
    outline.says("backoff", "timeout")
    if waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: full, so waits may also be much shorter")
    timeout = outline.timeout
    if timeout is None and outline.longest is not None:
        timeout = outline.longest
        outline.differs(
            "attempts", f"attempts={outline.attempts}: {show(timeout)} in time, its longest waits, stand for it"
        )
    outline.warns("giving up", "on a timeout RetryError comes out, with the original error as its cause")
    errors.tell_safety(outline)
    return {"initial": waits.initial, "maximum": waits.maximum, "multiplier": waits.multiplier, "timeout": timeout}
