"""`forbear explain`: its options, and the answer as text or JSON. The answer itself comes from the layers below."""

import json
from dataclasses import asdict
from itertools import groupby
from typing import Any

import click

from forbear.cli import curl, profiles, wording
from forbear.cli.draft import Draft
from forbear.cli.forecast import forecast
from forbear.cli.outcomes import Outcome, outcomes
from forbear.cli.output import EXIT_CODES, BadInput, columns, console, show_table, tell
from forbear.http.request import Judgement, Request
from forbear.policy import Policy
from forbear.run import switch
from forbear.services import registry
from forbear.services.rfc9110 import RFC9110

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear explain DELETE https://storage.googleapis.com/storage/v1/b/bkt/o/a
  forbear explain curl -X PATCH 'https://api.example.com/x' -H 'If-Match: "1"'"""


class _Explain(click.Command):
    """Leaves all that follows the word curl to curl's own grammar."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse our options, up to that word."""
        start = self._first_word(args)
        if curl.is_curl(args[start:]) and "--" not in args[:start]:
            args = [*args[:start], "--", *args[start:]]
        return super().parse_args(ctx, args)

    def _first_word(self, args: list[str]) -> int:
        """The index of the first argument that is neither an option of ours nor the value of one."""
        with_value = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        index = 0
        while index < len(args) and args[index].startswith("-"):
            index += 2 if args[index] in with_value else 1
        return index


@click.command(cls=_Explain, epilog=_EPILOG)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="METHOD URL | curl ...")
@click.option("-H", "--header", "headers", multiple=True, metavar="LINE", help="A header: 'Name: value'.")
@click.option("-d", "--data", "data", multiple=True, metavar="BODY", help="The body, or @FILE.")
@click.option("--data-binary", multiple=True, metavar="BODY", help="The body, or @FILE with its line ends.")
@click.option("--service", metavar="NAME", help="Judge by this service; for emulators. Default: by the host.")
@click.option("--profile", type=click.Choice(profiles.KINDS), default=profiles.KINDS[0], help="Default: policy.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    words: tuple[str, ...],
    headers: tuple[str, ...],
    data: tuple[str, ...],
    data_binary: tuple[str, ...],
    service: str | None,
    profile: str,
    as_json: bool,
) -> None:
    """Say whether a request may be repeated, and why.

    The request is a METHOD and a URL, or a whole curl command line (as it is, or in quotes); options of forbear come
    before the word curl. Nothing is sent, and nothing secret is printed.
    """
    if curl.is_curl(words):
        if headers or data or data_binary:
            raise BadInput("`-H`, `-d` and `--data-binary` belong to curl here", "put them after the word curl")
        request, ignored = curl.parse(words)
        if ignored:
            tell(f"left out of account: {', '.join(ignored)}")
    else:
        request = _request(words, headers, data, data_binary)
    path = request.target.partition("?")[0]
    name = service or (registry.find(request.host, path) or RFC9110).name
    policy = profiles.policy(f"{name}.{profile}")
    judge = policy.service or RFC9110
    switch.enable()  # the rules are asked for, whether or not retries are switched off here
    judgement = judge.classify(request)
    found = outcomes(request, policy, judge)
    if as_json:
        click.echo(json.dumps(_document(request, path, profile, judgement, found, policy), indent=2))
        return
    _print(request, path, profile, judgement, found, policy)
    if service is None and judge is RFC9110:
        tell("the host is not known: judged by HTTP alone; for an emulator name its --service")


def _request(
    words: tuple[str, ...], headers: tuple[str, ...], data: tuple[str, ...], data_binary: tuple[str, ...]
) -> Request:
    if len(words) != 2:
        raise BadInput(
            f"a request is a METHOD and a URL, got {len(words)} word{'' if len(words) == 1 else 's'}",
            "such as: forbear explain GET 'https://host/path'; put headers in quotes",
        )
    draft = Draft()
    for line in headers:
        draft.header(line)
    for text in data:
        draft.data(text)
    for text in data_binary:
        draft.data(text, as_it_is=True)
    return draft.build(words[0].upper(), words[1])


def _document(
    request: Request, path: str, profile: str, judgement: Judgement, found: list[Outcome], policy: Policy
) -> dict[str, Any]:
    return {
        "request": {"method": request.method, "host": request.host, "path": path},
        "service": judgement.service,
        "profile": profile,
        "operation": judgement.operation,
        "safety": judgement.safety.value,
        "conditions": list(judgement.conditions),
        "met": judgement.met,
        "repeatable": judgement.repeatable,
        "mutation": judgement.mutation,
        "session": judgement.session,
        "refused": judgement.refused,
        "maybe_done": list(judgement.maybe_done),
        "failures": [asdict(outcome) for outcome in found],
        "schedule": _schedule(policy),
    }


def _print(
    request: Request, path: str, profile: str, judgement: Judgement, found: list[Outcome], policy: Policy
) -> None:
    out = console()
    out.print(f"{request.method} {request.host}{path}\n", style="bold", markup=False)
    facts = {
        "service": f"{judgement.service} ({profile})",
        "operation": judgement.operation or "not known",
        "safety": judgement.safety.value,
        "conditions": _conditions(judgement),
        "repeatable": "yes" if judgement.repeatable else f"no{f': {judgement.refused}' if judgement.refused else ''}",
    }
    for label, text in facts.items():
        if text:
            out.print(f"{label:<12}{text}", markup=False)
    out.print()
    from rich.markup import escape

    table = columns("failure", "retried", "why")
    for (retried, why, _), group in groupby(found, key=lambda one: (one.retried, one.why, one.status is None)):
        failures = ", ".join(outcome.failure for outcome in group)
        table.add_row(failures, "[green]yes[/]" if retried else "[yellow]no[/]", escape(why))
    show_table(table)
    if judgement.maybe_done:
        replies = ", ".join(map(str, judgement.maybe_done))
        out.print(f"{replies} on a later attempt may mean that an earlier one had worked", markup=False)
    out.print(_schedule(policy), markup=False)


def _conditions(judgement: Judgement) -> str:
    """What would make the request repeatable, and what of it is there."""
    if not judgement.conditions:
        return ""
    wanted = " or ".join(judgement.conditions)
    return f"{wanted} (met: {'none' if judgement.met is None else judgement.met})"


def _schedule(policy: Policy) -> str:
    found = forecast(policy.limits, policy.backoff)
    first = ", ".join(wording.of_range(retry.wait) for retry in found.retries[:3])
    return f"waits of {first} and so on; {wording.of_limits(policy.limits)}; {wording.of_end(found)}"
