"""`forbear explain`: the options of the command, and the choice of the parser for its input."""

import json
import sys
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from forbear.answers import curl
from forbear.answers.draft import Draft
from forbear.answers.profile import ProfileChoice
from forbear.cli.kit.completion import complete_service, offer
from forbear.cli.kit.output import EXIT_CODES, BadInput, tell
from forbear.cli.kit.profiles import RECOMMENDED, profile_option, retry_not_found_option
from forbear.cli.kit.values import body_content
from forbear.http.request import Request
from forbear.tables.google_apis import is_google

if TYPE_CHECKING:
    from forbear.answers.answer import Answer

_EPILOG = f"""{EXIT_CODES}

\b
Examples:
  forbear explain DELETE https://storage.googleapis.com/storage/v1/b/bkt/o/a
  forbear explain curl -X PATCH 'https://api.example.com/x' -H 'If-Match: "1"'
  forbear explain /google.storage.v2.Storage/DeleteObject bucket=b
  forbear explain google pubsub.Publish
  forbear explain redis SET key value NX
  forbear explain aws sqs SendMessage
  forbear explain recorded.har
  forbear explain --operations cloud_storage.json"""

_OF_CURL = ("headers", "body", "data_binary")


class _ExplainCommand(click.Command):
    """A command that leaves the words after curl or redis to parsers of their own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments as click does, but leave the words from "redis" or curl on as they are."""
        start = self._first_word(args)
        foreign = curl.is_curl(args[start:]) or args[start : start + 1] == ["redis"]
        if foreign and "--" not in args[:start]:
            args = [*args[:start], "--", *args[start:]]
        return super().parse_args(ctx, args)

    def _first_word(self, args: list[str]) -> int:
        """Return the index of the first argument that is no option and no option's value, or a larger one."""
        with_value = {name for option in self.params if not getattr(option, "is_flag", True) for name in option.opts}
        index = 0
        while index < len(args) and args[index].startswith("-"):
            index += 2 if args[index] in with_value else 1
        return index


class _ExplainOptions(TypedDict):
    """The values of the command's options. None, False and () stand for unused ones; `profile` has a default."""

    headers: tuple[str, ...]
    body: tuple[str, ...]
    data_binary: tuple[str, ...]
    fields: str | None
    parameters: str | None
    modules: tuple[str, ...]
    har: str | None
    operations: str | None
    service: str | None
    profile: str
    retry_not_found: bool
    as_json: bool
    as_csv: bool


def _complete_words(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the services or operations of AWS that begin with what is typed after the word aws."""
    from forbear.answers import aws
    from forbear.answers.errors import NoAnswer

    words: list[str] = [*(ctx.params.get("words") or ())]
    if words[:1] != ["aws"] or len(words) > 2:
        return []
    try:
        names = aws.services() if len(words) == 1 else aws.operations(words[-1])
    except NoAnswer:
        return []
    return [name for name in names if name.startswith(incomplete)]


@click.command(cls=_ExplainCommand, epilog=_EPILOG)
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="METHOD URL | curl ... | grpc ... | google ... | redis ... | aws ... | FILE.har",
    shell_complete=_complete_words,
)
@click.option("-H", "--header", "headers", multiple=True, metavar="LINE", help="A header: 'Name: value'.")
@click.option("-d", "--data", "body", multiple=True, metavar="BODY", help="The body, or @FILE.")
@click.option("--data-binary", multiple=True, metavar="BODY", help="The body, or @FILE including its line ends.")
@click.option("--json-fields", "fields", metavar="OBJECT", help="Fields of a gRPC request, as JSON.")
@click.option("--parameters", metavar="OBJECT", help="Parameters of a call of AWS, as JSON.")
@click.option(
    "--import",
    "modules",
    multiple=True,
    metavar="MODULE",
    help="Import this module first: one with the definition of an RPC, such as helloworld_pb2.",
)
@click.option("--har", metavar="FILE", help="Judge all requests that a browser or a proxy recorded; - for stdin.")
@click.option(
    "--operations",
    metavar="TABLE",
    help="List a table of operations; a wrong name prints the list.",
    shell_complete=offer("forbear.answers.tables", "names"),
)
@click.option(
    "--service",
    metavar="NAME",
    help="Judge by this service, as for emulators. Default: by the host.",
    shell_complete=complete_service,
)
@profile_option(RECOMMENDED, "A profile of the service, such as documented; any name of `forbear schedule`.")
@retry_not_found_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a table of operations as CSV.")
def command(words: tuple[str, ...], **options: Unpack[_ExplainOptions]) -> None:
    """Say whether a request may be repeated, and why.

    The request is a METHOD and a URL, or a curl command line (as words or quoted as one). It may also be the name of an
    RPC, /package.Service/Method, with fields as NAME=VALUE; the word google and a part of such a name, pubsub.Publish;
    the word redis and a command; or the word aws, a service and an operation. Options of forbear come before the words
    curl and redis. Nothing is sent, and no secret is printed.

    A HAR file holds many requests, which are listed worst first. `--operations` lists the known operations of a
    service, such as cloud_storage.json, iam or redis.
    """
    kind = _kind(words, options)
    _check(kind, options)
    if kind is _InputKind.TABLE:
        _list_operations(options["operations"] or "", words, options)
    elif kind is _InputKind.HAR:
        _judge_recorded(words, options)
    else:
        from forbear.cli.kit.answers import document_of, show_answer

        answer = _ANSWERS[kind](words, options)
        if options["as_json"]:
            click.echo(json.dumps(document_of(answer), indent=2))
        else:
            show_answer(answer)


class _InputKind(Enum):
    """A kind of input. Its value describes it, and lists the options that it accepts besides `--json`."""

    REQUEST = "a METHOD and a URL", "headers", "body", "data_binary", "service", "profile", "retry_not_found"
    CURL = "a curl line", "service", "profile", "retry_not_found"
    GRPC = "a gRPC call", "fields", "modules", "service", "profile", "retry_not_found"
    REDIS = "a Redis command", "profile", "retry_not_found"
    AWS = "a call of AWS", "parameters", "profile"
    HAR = "a HAR file", "har", "service", "profile", "retry_not_found"
    TABLE = "--operations", "operations", "as_csv"


def _kind(words: tuple[str, ...], options: _ExplainOptions) -> _InputKind:
    if options["operations"] is not None:
        return _InputKind.TABLE
    if options["har"] is not None or (len(words) == 1 and words[0].lower().endswith(".har") and "://" not in words[0]):
        return _InputKind.HAR
    if curl.is_curl(words):
        return _InputKind.CURL
    if words and words[0].startswith("/"):
        return _InputKind.GRPC
    kinds = {"grpc": _InputKind.GRPC, "google": _InputKind.GRPC, "redis": _InputKind.REDIS, "aws": _InputKind.AWS}
    return kinds.get(words[0] if words else "", _InputKind.REQUEST)


def _check(kind: _InputKind, options: _ExplainOptions) -> None:
    """Raise BadInput for a used option that does not apply to the kind of input, and for `--json` with `--csv`."""
    text, *allowed = kind.value
    for name, value in options.items():
        if name not in (*allowed, "as_json") and value not in (None, (), False, RECOMMENDED):
            cure = "put it after the word curl" if kind is _InputKind.CURL and name in _OF_CURL else "leave it out"
            raise BadInput(f"`{name}` does not go with {text}", cure)
    if options["as_csv"] and options["as_json"]:
        raise BadInput("`--json` does not go with `--csv`", "leave one of them out")


def _choose_profile(options: _ExplainOptions) -> ProfileChoice:
    return ProfileChoice(options["profile"], options["retry_not_found"])


def _answer_request(words: tuple[str, ...], options: _ExplainOptions) -> "Answer":
    if not words:
        such_as = ("POST https://api.example.com/orders", "redis INCR visits", "aws sqs SendMessage")
        hint = "; ".join(f"forbear explain {words}" for words in such_as)
        raise BadInput("a request, an RPC, a command of Redis or a call of AWS must follow", f"such as: {hint}")
    if len(words) != 2:
        raise BadInput(
            f"a request is a METHOD and a URL, got {len(words)} word{'' if len(words) == 1 else 's'}",
            "such as: forbear explain GET 'https://host/path', or aws sqs.SendMessage; put headers in quotes",
        )
    draft = Draft(_read)
    for line in options["headers"]:
        draft.header(line)
    for text in options["body"]:
        draft.data(text)
    for text in options["data_binary"]:
        draft.data(text, keep_line_ends=True)
    return _answer_http(draft.build(words[0].upper(), words[1]), options)


def _read(name: str) -> bytes | None:
    """Return the content of a file that is named in a body, None for stdin."""
    return None if name == "-" else body_content(name)


def _answer_curl(words: tuple[str, ...], options: _ExplainOptions) -> "Answer":
    if len(words) > 1 and words[-1] == "--json":
        raise BadInput("the curl option --json needs a value", "put options of forbear before curl")
    request, ignored = curl.parse(words, _read)
    if ignored:
        tell(f"ignored: {', '.join(ignored)}")
    return _answer_http(request, options)


def _answer_http(request: Request, options: _ExplainOptions) -> "Answer":
    from forbear.answers import http

    answer = http.answer(request, options["service"], _choose_profile(options))
    is_known = answer.judgement.service != http.UNKNOWN_SERVICE or is_google(request.host)
    if not (is_known or options["as_json"] or options["service"]):
        tell("the host is not known: judged by HTTP alone; for an emulator name its --service")
    return answer


def _answer_grpc(words: tuple[str, ...], options: _ExplainOptions) -> "Answer":
    from forbear.answers import grpc

    if words[0] != "grpc":
        words = ("grpc", *words)
    _import(options["modules"])
    if len(words) == 1:
        example = "forbear explain grpc google.storage.v2.Storage/DeleteObject if_generation_match=0"
        raise BadInput("a call is a method and fields, got no method", f"such as: {example}")
    text = options["fields"]
    call = grpc.parse_call(words[1:], None if text is None else grpc.parse_fields(text))
    return grpc.answer(call, options["service"], _choose_profile(options))


def _import(modules: tuple[str, ...]) -> None:
    """Import the modules that the user names, also from the current folder; raise BadInput for one that fails."""
    if modules and "" not in sys.path:
        sys.path.insert(0, "")
    for name in modules:
        try:
            import_module(name)
        except Exception as error:  # whatever the code of a module raises
            raise BadInput(
                f"`--import` must name a module that can be imported, got {name}: {error}", "such as helloworld_pb2"
            ) from None


def _answer_redis(words: tuple[str, ...], options: _ExplainOptions) -> "Answer":
    from forbear.answers import redis

    return redis.answer(redis.parse_command(words[1:]), _choose_profile(options))


def _answer_aws(words: tuple[str, ...], options: _ExplainOptions) -> "Answer":
    from forbear.answers import aws

    text = options["parameters"]
    call = aws.parse_call(words[1:], None if text is None else aws.parse_parameters(text))
    return aws.answer(call, _choose_profile(options))


_ANSWERS = {
    _InputKind.AWS: _answer_aws,
    _InputKind.REQUEST: _answer_request,
    _InputKind.CURL: _answer_curl,
    _InputKind.GRPC: _answer_grpc,
    _InputKind.REDIS: _answer_redis,
}


def _judge_recorded(words: tuple[str, ...], options: _ExplainOptions) -> None:
    from forbear.answers import har
    from forbear.cli.explain import listings

    names = [*words, *([] if options["har"] is None else [options["har"]])]
    if len(names) != 1:
        raise BadInput(f"a HAR file comes alone, got {len(names)} words", "leave the others out")
    requests, others = har.parse(listings.read_har(names[0]), names[0])
    if others:
        tell(f"ignored: {others} entries that are not HTTP requests")
    judged = har.judge(requests, options["service"], _choose_profile(options))
    if options["as_json"]:
        listings.print_requests(judged, options["profile"])
    else:
        listings.show_requests(judged)


def _list_operations(name: str, words: tuple[str, ...], options: _ExplainOptions) -> None:
    from forbear.answers import tables
    from forbear.cli.explain import listings

    if words:
        raise BadInput("`--operations` lists a whole table", "leave the request out")
    entries = tables.find(name)
    if options["as_json"]:
        listings.print_operations(name, entries)
    elif options["as_csv"]:
        listings.print_operations_csv(entries)
    else:
        listings.show_operations(entries)
