"""Export a policy to Go: the client of Cloud Storage, and those of IAM, Memorystore and Resource Manager (gax-go)."""

from forbear.export.outline import Exported, Outline, outline_storage
from forbear.export.rpcs import as_camel, code_names, outline_clients
from forbear.export.waits import Waits
from forbear.policy import Policy

_LEAST = 1e-6  # seconds
_STATUSES = (408, 429, *range(500, 600))
_SOURCE = "gax-go, call_option.go: `d := time.Duration(1 + rand.Int63n(int64(bo.cur)))`"


def go(policy: Policy) -> Exported[str]:
    """Return Go that sets the retries of a `*storage.Client` called `client`. Example: see `source`."""
    outline = outline_storage(policy)
    waits = outline.full_waits
    standard, others = ['"time"'], ['"cloud.google.com/go/storage"', '"github.com/googleapis/gax-go/v2"']
    options = ["storage.WithPolicy(storage.RetryIdempotent),", *_backoff("storage.WithBackoff(", waits), "}),"]
    if waits.initial < _LEAST:
        outline.differs("backoff", f"at least {_LEAST:g} s, because 0 means the client's own")
        outline.has_full_jitter(_SOURCE)
    else:
        outline.takes_full_waits(_SOURCE)
    if outline.attempts is not None:
        options.append(f"storage.WithMaxAttempts({outline.attempts}),")
        outline.says("attempts")
    if policy.service is not None and outline.statuses != _STATUSES:
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
    outline.differs("errors", "the client classifies errors without a status")
    outline.knows_idempotent_calls()
    _limit_each_call(outline)
    return outline.text(
        *("import (", *(f"\t{name}" for name in standard), "", *(f"\t{name}" for name in sorted(others)), ")", ""),
        *("client.SetRetry(", *(f"\t{line}" for line in options), ")"),
    )


def gax_go(policy: Policy) -> Exported[str]:
    """Return Go with a function for each client of IAM, Memorystore or Resource Manager. Example: see `source`."""
    outline, clients = outline_clients(policy, "go")
    waits = outline.takes_full_waits(_SOURCE)
    _limit_each_call(outline)
    homes = [client.home.split() for client in clients]
    imports = {f'{package} "{path}"' for path, package, _ in homes}
    imports |= {'gax "github.com/googleapis/gax-go/v2"', 'codes "google.golang.org/grpc/codes"'}
    lines = [
        "var retry = []gax.CallOption{gax.WithRetry(func() gax.Retryer {",
        f"\tsafe := []codes.Code{{{', '.join(f'codes.{as_camel(code)}' for code in code_names(outline))}}}",
        *(f"\t{line}" for line in _backoff("return gax.OnCodes(safe, ", waits)),
        "\t})",
        "})}",
    ]
    for client, (_, package, kind) in zip(clients, homes, strict=True):
        lines += ["", f"func set{client.name}Retries(client *{package}.{kind}) {{"]
        lines += [*(f"\tclient.CallOptions.{method} = retry" for method in client.methods), "}"]
    return outline.text("import (", '\t"time"', "", *(f"\t{each}" for each in sorted(imports)), ")", "", *lines)


def _backoff(call: str, waits: Waits) -> list[str]:
    """Return the lines of a gax.Backoff as the last argument of a call, without its end."""
    return [
        f"{call}gax.Backoff{{",
        f"\tInitial:    {_duration(waits.initial)},",
        f"\tMax:        {_duration(waits.maximum)},",
        f"\tMultiplier: {waits.multiplier:g},",
    ]


def _limit_each_call(outline: Outline) -> None:
    if outline.timeout is not None:
        outline.differs("timeout", f"context.WithTimeout(ctx, {_duration(outline.timeout)}) for each call")


def _duration(seconds: float) -> str:
    seconds = max(seconds, _LEAST)
    if seconds == int(seconds):
        return f"{int(seconds)} * time.Second"
    return f"{round(seconds / _LEAST)} * time.Microsecond"
