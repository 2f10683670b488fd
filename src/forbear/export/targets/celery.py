"""Celery: the options of a task that is retried by itself. A retry is a new message to a worker, in whole seconds."""

from math import ceil
from typing import Any

from forbear.export import errors
from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.policy import Policy

Options = dict[str, Any]


def celery(policy: Policy) -> Exported[Options]:
    """Keywords for `app.task`: `@app.task(**celery(policy).value)`."""
    outline = Outline(policy)
    types = errors.types_of(outline)
    return Exported({"autoretry_for": types, **_options(outline)}, outline.losses)


def source(policy: Policy) -> Exported[str]:
    """The same as source text."""
    outline = Outline(policy)
    found = errors.of(outline)
    lines = [*(f"import {module}" for module in found.imports), "", "TASK_OPTIONS = {"]
    lines.append(f'    "autoretry_for": {found.text},')
    lines += [f'    "{name}": {value!r},' for name, value in _options(outline).items()]
    return Exported("\n".join([*lines, "}", ""]).lstrip(), outline.losses)


def _options(outline: Outline) -> Options:
    waits = outline.waits
    errors.tell_safety(outline)
    retries = None if outline.retries is None else outline.count()
    if waits.multiplier == 1:
        seconds = max(ceil(waits.initial), 1)
        if seconds == waits.initial:
            outline.says("backoff")
        outline.differs("backoff", f"waits of {waits}: {seconds} s, for Celery waits whole seconds")
        return {"max_retries": retries, "default_retry_delay": seconds}
    initial, maximum = max(ceil(waits.initial), 1), max(ceil(waits.maximum), 1)
    if (initial, 2, maximum) == (waits.initial, waits.multiplier, waits.maximum):
        outline.says("backoff")
    outline.differs("backoff", f"waits of {waits}: whole seconds from {initial} s, doubled up to {maximum} s")
    outline.differs("jitter", f"jitter={waits.jitter}: full, in whole seconds, so a wait may be none at all")
    return {
        "max_retries": retries,
        "retry_backoff": initial,
        "retry_backoff_max": maximum,
        "retry_jitter": waits.jitter != "none",
    }
