"""`forbear explain`: its options, and the answer as text or JSON. The answer itself comes from the layers below."""

import json
from dataclasses import asdict, dataclass
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
    answer = _answer(request, service, profile)
    if as_json:
        click.echo(json.dumps(_document(answer), indent=2))
        return
    _print(answer)
    if service is None and answer.judgement.service == RFC9110.name:
        tell("the host is not known: judged by HTTP alone; for an emulator name its --service")


@dataclass(frozen=True)
class _Answer:
    request: Request
    path: str  # without the query, which may hold secrets
    profile: str
    policy: Policy
    judgement: Judgement
    outcomes: list[Outcome]


def _answer(request: Request, service: str | None, profile: str) -> _Answer:
    path = request.target.partition("?")[0]
    if service is None and profile == profiles.KINDS[0]:
        policy = registry.recommended(request.host, path)
    else:
        service = service or (registry.find(request.host, path) or RFC9110).name
        policy = profiles.policy(f"{service}.{profile}")
    if policy.service is None:
        raise BadInput(f"{service} does not judge HTTP requests", "leave --service out, or name the service of an API")
    switch.enable()  # the rules are asked for, whether or not retries are switched off here
    judgement = policy.service.classify(request)
    return _Answer(request, path, profile, policy, judgement, outcomes(request, policy, policy.service))


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


def _document(answer: _Answer) -> dict[str, Any]:
    judgement = answer.judgement
    return {
        "request": {"method": answer.request.method, "host": answer.request.host, "path": answer.path},
        "service": judgement.service,
        "profile": answer.profile,
        "operation": judgement.operation,
        "safety": judgement.safety.value,
        "conditions": list(judgement.conditions),
        "met": judgement.met,
        "repeatable": judgement.repeatable,
        "mutation": judgement.mutation,
        "session": judgement.session,
        "refused": judgement.refused,
        "maybe_done": list(judgement.maybe_done),
        "failures": [asdict(outcome) for outcome in answer.outcomes],
        "schedule": _schedule(answer.policy),
    }


def _print(answer: _Answer) -> None:
    from rich.markup import escape

    out, judgement = console(), answer.judgement
    out.print(f"{answer.request.method} {answer.request.host}{answer.path}\n", style="bold", markup=False)
    facts = {
        "service": f"{judgement.service} ({answer.profile})",
        "operation": judgement.operation or "not known",
        "safety": judgement.safety.value,
        "conditions": _conditions(judgement),
        "repeatable": "yes" if judgement.repeatable else f"no{f': {judgement.refused}' if judgement.refused else ''}",
    }
    for label, text in facts.items():
        if text:
            out.print(f"{label:<12}{text}", markup=False)
    out.print()
    table = columns("failure", "retried", "why")
    for (retried, why, _), group in groupby(answer.outcomes, lambda one: (one.retried, one.why, one.status is None)):
        failures = ", ".join(outcome.failure for outcome in group)
        table.add_row(failures, "[green]yes[/]" if retried else "[yellow]no[/]", escape(why))
    show_table(table)
    if judgement.maybe_done:
        replies = ", ".join(map(str, judgement.maybe_done))
        out.print(f"{replies} on a later attempt may mean that an earlier one had worked", markup=False)
    out.print(_schedule(answer.policy), markup=False)


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
