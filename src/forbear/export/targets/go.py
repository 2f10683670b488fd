"""Go: how to make the Cloud Storage client of cloud.google.com/go/storage retry."""

from forbear.core.decide import show
from forbear.export.exported import Exported
from forbear.export.outline import Outline
from forbear.policy import Policy

_LEAST = 1e-6
_ITS_OWN = (408, 429, *range(500, 600))


def go(policy: Policy) -> Exported[str]:
    """Source text that sets the retries of a `*storage.Client` called `client`."""
    outline = Outline.for_storage(policy)
    waits = outline.waits
    standard, others = ['"time"'], ['"cloud.google.com/go/storage"', '"github.com/googleapis/gax-go/v2"']
    options = [
        "storage.WithPolicy(storage.RetryIdempotent),",
        "storage.WithBackoff(gax.Backoff{",
        f"\tInitial:    {_duration(waits.initial)},",
        f"\tMax:        {_duration(waits.maximum)},",
        f"\tMultiplier: {waits.multiplier:g},",
        "}),",
    ]
    if waits.initial >= _LEAST:
        outline.says("backoff")
    outline.differs("backoff", f"waits of {waits}: at least {_LEAST:g} s, for 0 means the client's own")
    if waits.jitter == "full":
        outline.says("jitter")
    outline.differs("jitter", f"jitter={waits.jitter}: full, so waits may also be much shorter")
    if outline.attempts is not None:
        options.append(f"storage.WithMaxAttempts({outline.attempts}),")
        outline.says("attempts")
    if policy.service is not None and outline.statuses != _ITS_OWN:
        standard.insert(0, '"errors"')
        others.append('"google.golang.org/api/googleapi"')
        options += [
            "storage.WithErrorFunc(func(err error) bool {",
            "\tvar reply *googleapi.Error",
            "\tif errors.As(err, &reply) {",
            "\t\tswitch reply.Code {",
            f"\t\tcase {', '.join(map(str, outline.statuses))}:",
            "\t\t\treturn true",
            "\t\t}",
            "\t\treturn false",
            "\t}",
            "\treturn storage.ShouldRetry(err)",
            "}),",
        ]
    outline.differs("errors", "errors: those without a status as the client sees them")
    outline.differs("safety", "safety: by the client's own list of what is idempotent")
    if outline.timeout is not None:
        outline.differs(
            "timeout",
            f"timeout of {show(outline.timeout)}: context.WithTimeout(ctx, {_duration(outline.timeout)}) for each call",
        )
    lines = ["import (", *(f"\t{name}" for name in standard), "", *(f"\t{name}" for name in sorted(others)), ")", ""]
    lines += ["client.SetRetry(", *(f"\t{line}" for line in options), ")", ""]
    return Exported("\n".join(lines), outline.losses)


def _duration(seconds: float) -> str:
    seconds = max(seconds, _LEAST)
    if seconds == int(seconds):
        return f"{int(seconds)} * time.Second"
    return f"{round(seconds / _LEAST)} * time.Microsecond"
