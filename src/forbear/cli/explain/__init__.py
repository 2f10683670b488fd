"""`forbear explain`: its options, and which reader what was typed is for. The answers come from the layers below."""

import json
from enum import Enum
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from forbear.cli import profiles
from forbear.cli.explain import curl
from forbear.cli.explain.draft import Draft
from forbear.cli.output import EXIT_CODES, BadInput, tell
from forbear.http.request import Request
from forbear.run import switch
from forbear.services.rfc9110 import RFC9110

if TYPE_CHECKING:
    from forbear.cli.explain.answer import Answer

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear explain DELETE https://storage.googleapis.com/storage/v1/b/bkt/o/a
  forbear explain curl -X PATCH 'https://api.example.com/x' -H 'If-Match: "1"'
  forbear explain grpc google.storage.v2.Storage/DeleteObject bucket=b
  forbear explain redis SET key value NX
  forbear explain recorded.har
  forbear explain --operations cloud_storage.json"""


_SPELT = {"headers": "-H", "data": "-d", "as_csv": "--csv"}
_OF_CURL = ("headers", "data", "data_binary")


class _Explain(click.Command):
    """Leaves all that follows the word curl or redis to a grammar of their own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse our options, up to that word."""
        start = self._first_word(args)
        theirs = curl.is_curl(args[start:]) or args[start : start + 1] == ["redis"]
        if theirs and "--" not in args[:start]:
            args = [*args[:start], "--", *args[start:]]
        return super().parse_args(ctx, args)

    def _first_word(self, args: list[str]) -> int:
        """The index of the first argument that is neither an option of ours nor the value of one."""
        with_value = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        index = 0
        while index < len(args) and args[index].startswith("-"):
            index += 2 if args[index] in with_value else 1
        return index


class _Given(TypedDict):
    """The values of the options."""

    headers: tuple[str, ...]
    data: tuple[str, ...]
    data_binary: tuple[str, ...]
    json_fields: str | None
    har: str | None
    operations: str | None
    service: str | None
    profile: str
    as_json: bool
    as_csv: bool


@click.command(cls=_Explain, epilog=_EPILOG)
@click.argument(
    "words", nargs=-1, type=click.UNPROCESSED, metavar="METHOD URL | curl ... | grpc ... | redis ... | FILE.har"
)
@click.option("-H", "--header", "headers", multiple=True, metavar="LINE", help="A header: 'Name: value'.")
@click.option("-d", "--data", "data", multiple=True, metavar="BODY", help="The body, or @FILE.")
@click.option("--data-binary", multiple=True, metavar="BODY", help="The body, or @FILE with its line ends.")
@click.option("--json-fields", metavar="OBJECT", help="Fields of a gRPC request, as JSON.")
@click.option("--har", metavar="FILE", help="Judge all requests that a browser or a proxy has saved; - for stdin.")
@click.option("--operations", metavar="TABLE", help="List a table of operations; a wrong name gets a list.")
@click.option("--service", metavar="NAME", help="Judge by this service; for emulators. Default: by the host.")
@click.option("--profile", type=click.Choice(profiles.KINDS), default=profiles.KINDS[0], help="Default: policy.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a table of operations as CSV.")
def command(words: tuple[str, ...], **given: Unpack[_Given]) -> None:
    """Say whether a request may be repeated, and why.

    The request is a METHOD and a URL, or a whole curl command line (as it is, or in quotes), or the word grpc, a method
    and fields as NAME=VALUE, or the word redis and a command; options of forbear come before the words curl and redis.
    Nothing is sent, and nothing secret is printed.

    Or it is many: a HAR file, whose requests are listed worst first. `--operations` lists what is known of a service:
    cloud_storage.json, cloud_storage.xml, cloud_storage.grpc, iam, memorystore or redis.
    """
    kind = _kind(words, given)
    _check(kind, given)
    if kind is _Kind.TABLE:
        _list(given["operations"] or "", words, given)
    elif kind is _Kind.HAR:
        _judge_all(words, given)
    else:
        switch.enable()  # the rules are asked for, whether or not retries are switched off here
        answer = _ANSWERS[kind](words, given)
        if given["as_json"]:
            click.echo(json.dumps(answer.document(), indent=2))
        else:
            answer.show()


class _Kind(Enum):
    """What may be explained, and the options that go with it, `--json` apart."""

    REQUEST = "a METHOD and a URL", "headers", "data", "data_binary", "service", "profile"
    CURL = "a curl line", "service", "profile"
    GRPC = "a gRPC call", "json_fields", "service", "profile"
    REDIS = "a Redis command", "profile"
    HAR = "a HAR file", "har", "service", "profile"
    TABLE = "--operations", "operations", "as_csv"


def _kind(words: tuple[str, ...], given: _Given) -> _Kind:
    if given["operations"] is not None:
        return _Kind.TABLE
    if given["har"] is not None or (len(words) == 1 and words[0].lower().endswith(".har") and "://" not in words[0]):
        return _Kind.HAR
    if curl.is_curl(words):
        return _Kind.CURL
    return {"grpc": _Kind.GRPC, "redis": _Kind.REDIS}.get(words[0] if words else "", _Kind.REQUEST)


def _check(kind: _Kind, given: _Given) -> None:
    """Refuse options that would be left out of account."""
    text, *taken = kind.value
    for option, value in given.items():
        if option not in (*taken, "as_json") and value not in (None, (), False, profiles.KINDS[0]):
            cure = "put it after the word curl" if kind is _Kind.CURL and option in _OF_CURL else "leave it out"
            raise BadInput(f"`{_SPELT.get(option) or f'--{option}'.replace('_', '-')}` does not go with {text}", cure)
    if given["as_csv"] and given["as_json"]:
        raise BadInput("`--json` does not go with `--csv`", "leave one of them out")


def _of_request(words: tuple[str, ...], given: _Given) -> "Answer":
    if len(words) != 2:
        raise BadInput(
            f"a request is a METHOD and a URL, got {len(words)} word{'' if len(words) == 1 else 's'}",
            "such as: forbear explain GET 'https://host/path'; put headers in quotes",
        )
    draft = Draft()
    for line in given["headers"]:
        draft.header(line)
    for text in given["data"]:
        draft.data(text)
    for text in given["data_binary"]:
        draft.data(text, as_it_is=True)
    return _of_http(draft.build(words[0].upper(), words[1]), given)


def _of_curl(words: tuple[str, ...], given: _Given) -> "Answer":
    request, ignored = curl.parse(words)
    if ignored:
        tell(f"left out of account: {', '.join(ignored)}")
    return _of_http(request, given)


def _of_http(request: Request, given: _Given) -> "Answer":
    from forbear.cli.explain import http

    answer = http.answer(request, given["service"], given["profile"])
    if not given["as_json"] and given["service"] is None and answer.judged.service == RFC9110.name:
        tell("the host is not known: judged by HTTP alone; for an emulator name its --service")
    return answer


def _of_grpc(words: tuple[str, ...], given: _Given) -> "Answer":
    from forbear.cli.explain import grpc

    call = grpc.call_of(words[1:], given["json_fields"])
    answer = grpc.answer(call, given["service"], given["profile"])
    if not given["as_json"] and answer.judged.service == grpc.UNKNOWN_SERVICE:
        tell("the package is not known, so nothing says that a call may be repeated; perhaps name its --service")
    return answer


def _of_redis(words: tuple[str, ...], given: _Given) -> "Answer":
    from forbear.cli.explain import redis

    return redis.answer(redis.words_of(words[1:]), given["profile"])


_ANSWERS = {_Kind.REQUEST: _of_request, _Kind.CURL: _of_curl, _Kind.GRPC: _of_grpc, _Kind.REDIS: _of_redis}


def _judge_all(words: tuple[str, ...], given: _Given) -> None:
    from forbear.cli.explain import har, traffic

    names = [*words, *([] if given["har"] is None else [given["har"]])]
    if len(names) != 1:
        raise BadInput(f"a HAR file comes alone, got {len(names)} words", "leave the others out")
    recorded, others = har.read(names[0])
    if others:
        tell(f"left out of account: {others} entries that are no HTTP requests")
    found = traffic.judged(recorded, given["service"], given["profile"])
    if given["as_json"]:
        traffic.print_json(found, given["profile"])
    else:
        traffic.show(found)


def _list(name: str, words: tuple[str, ...], given: _Given) -> None:
    from forbear.cli.explain import listing, tables

    if words:
        raise BadInput("`--operations` lists a whole table", "leave the request out")
    show = listing.print_json if given["as_json"] else listing.print_csv if given["as_csv"] else listing.show
    show(name, tables.find(name))
