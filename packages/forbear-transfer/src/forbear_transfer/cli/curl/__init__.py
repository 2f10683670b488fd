"""`forbear curl`: the options of the command, and the split of its words between forbear and the curl line."""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from forbear import Api
from forbear.adapters import CurlLine, ProfileChoice, Vouch, is_curl, takes_next
from forbear.cli.kit.completion import complete_service
from forbear.cli.kit.options import POLICY_OPTIONS, GroupedCommand, PolicyOptions
from forbear.cli.kit.output import BadInput, tell
from forbear.cli.kit.profiles import RECOMMENDED, profile_option, retry_not_found_option
from forbear.cli.kit.values import body_content

if TYPE_CHECKING:
    from forbear_transfer.cli.curl.send import Rules
    from forbear_transfer.cli.curl.settings import CurlSettings

_EPILOG = """Exit codes: those of curl. 0 ok, also for an error status without -f; 2 usage or
bad input; 6 unknown host; 7 not connected; 18 response incomplete; 22 error
status with -f; 23 response not written; 28 timeout; 35 TLS failed; 47 too many
redirects; 52, 55, 56 connection lost; 60 certificate not trusted; 130 interrupted.

\b
Examples:
  forbear curl -X DELETE 'https://storage.googleapis.com/storage/v1/b/bkt/o/a'
  forbear curl GET https://api.example.com/things -o things.json --attempts 3
  forbear curl -d @order.json https://api.example.com/orders \\
      --idempotency-header Idempotency-Key
  forbear curl --google-credentials \\
      https://storage.googleapis.com/storage/v1/b/bkt"""

_METHOD = re.compile(r"[A-Za-z]+")


class _CurlCommand(GroupedCommand):
    """A command that takes its own options wherever they are, and leaves all other words to the parser of curl."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of forbear, which have long names only; all other words become the curl line."""
        if ctx.resilient_parsing:  # a shell completes words
            return super().parse_args(ctx, [])
        own, line = self._split(args)
        return super().parse_args(ctx, [*own, "--", *line])

    def _split(self, args: list[str]) -> tuple[list[str], list[str]]:
        """Return the words of our options, and the others. A value of a curl option is never an option."""
        options = {name: option for option in self.params for name in option.opts if isinstance(option, click.Option)}
        flags = {"--help", *(name for name, option in options.items() if getattr(option, "is_flag", False))}
        own: list[str] = []
        line: list[str] = []
        left = iter(args)
        for word in left:
            name, equals, _ = word.partition("=")
            if word == "--":
                line += left
            elif word in ("-h", "--help") or name in options:
                own.append("--help" if word == "-h" else word)
                if name not in flags and not equals and word != "-h":
                    value = next(left, None)
                    if value is None:
                        raise BadInput(f"the option {word} needs a value", "see `forbear curl --help`")
                    own.append(value)
            else:
                line.append(word)
                if takes_next(word):
                    line += [value for value in (next(left, None),) if value is not None]
        return own, line


class CurlOptions(PolicyOptions):
    """The values of the command's own options. None, False and () stand for unused ones."""

    service: str | None
    profile: str
    retry_not_found: bool
    safe: tuple[str, ...]
    not_executed: tuple[str, ...]
    idempotency_header: str | None
    google_credentials: bool
    credentials: Path | None
    impersonate: str | None
    report: str
    dry_run: bool


@click.command(cls=_CurlCommand, params=[*POLICY_OPTIONS], epilog=_EPILOG)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[METHOD] URL [CURL OPTIONS] | curl ...")
@click.option(
    "--service",
    metavar="NAME",
    help="Judge by this service, as for emulators. Default: by the host.",
    shell_complete=complete_service,
)
@profile_option(RECOMMENDED, "A profile of the service, such as documented; any name of `forbear schedule`.")
@retry_not_found_option
@click.option(
    "--safe",
    multiple=True,
    metavar="PATTERN",
    help="Vouch that requests may be executed twice: 'POST https://host/v1/search*'.",
)
@click.option(
    "--not-executed",
    multiple=True,
    metavar="ORIGIN=STATUSES",
    help="Vouch that an origin executes nothing when it responds so: https://host=429,503.",
)
@click.option("--idempotency-header", metavar="NAME", help="Add a header by which the API drops duplicates of writes.")
@click.option("--google-credentials", is_flag=True, help="Send a token of the application default credentials.")
@click.option(
    "--credentials",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Send a token of this Google key file.",
)
@click.option("--impersonate", metavar="EMAIL", help="Send a token of this Google service account.")
@click.option(
    "--report",
    type=click.Choice(("text", "json", "none")),
    default="text",
    help="What stderr says about attempts: retries as text (the default), one JSON object, or nothing.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be retried, as `forbear explain` does; send nothing.")
def command(words: tuple[str, ...], **options: Unpack[CurlOptions]) -> None:
    """Send an HTTP request, and send it again where that is safe.

    Put `forbear` before a curl command line, or write a METHOD and a URL. The options of curl apply; one that is not
    supported is an error. Options of forbear may be anywhere. The response goes to stdout, or to the file of -o.

    A request that the server may have executed is sent again only if that does no harm, as `forbear explain` says, or
    if you vouch for it.
    """
    with ExitStack() as stack:
        _run(words, options, stack)


def _run(words: tuple[str, ...], options: CurlOptions, stack: ExitStack) -> None:
    # Imported late: httpx takes longer than all the rest, and `--help` does not need it.
    from forbear.cli.kit.answers import show_answer
    from forbear_transfer.cli.curl.content import content_of, stdin_bytes
    from forbear_transfer.cli.curl.hop import check_destination, first_hop, token_headers
    from forbear_transfer.cli.curl.output import check_format
    from forbear_transfer.cli.curl.send import CurlRun
    from forbear_transfer.cli.curl.settings import CurlSettings

    def read(name: str) -> bytes | None:
        if name != "-":
            return body_content(name)
        return None if options["dry_run"] else stdin_bytes()

    line = CurlLine(read)
    line.read(words if is_curl(words) else ("curl", *words))
    if len(line.urls) == 2 and line.method is None and _METHOD.fullmatch(line.urls[0]):
        line.method = line.urls.pop(0).upper()
    if line.end:
        tell(f"ignored: {line.end} and what follows it")
    settings = CurlSettings.of(line)
    check_format(settings.values.get("write-out", ""))
    rules = _make_rules(settings, options)
    request = line.request()
    if options["dry_run"]:
        show_answer(rules.answer(request))
        return
    hop = first_hop(line, request, settings, content_of(line, stack))
    run = CurlRun(settings, rules)
    file, account = options["credentials"], options["impersonate"]
    if options["google_credentials"] or file is not None or account is not None:
        check_destination(hop, settings)
        hop = hop.with_headers(token_headers(file, account, rules.policy_for(hop)[0]))
    run.run(hop, line.urls[0])


def _make_rules(settings: "CurlSettings", options: CurlOptions) -> "Rules":
    from forbear_transfer.cli.curl.send import Rules

    limits = options.copy()
    if settings.retries is not None and options["attempts"] is None:
        limits["attempts"] = settings.retries + 1
    if settings.retry_timeout is not None and options["timeout"] is None:
        limits["timeout"] = settings.retry_timeout
    backoff = (options["initial"], options["maximum"], options["multiplier"], options["jitter"], options["constant"])
    if settings.retry_delay is not None and all(value is None for value in backoff):
        limits["constant"] = settings.retry_delay
    refusals = dict(map(_parse_refusals, options["not_executed"]))
    header = options["idempotency_header"]
    choice = ProfileChoice(options["profile"], options["retry_not_found"])
    try:
        Vouch(options["safe"], [Api(origin, not_executed=statuses) for origin, statuses in refusals.items()])
    except (TypeError, ValueError) as error:
        raise BadInput(str(error)) from None
    if header is not None and not re.fullmatch(r"[A-Za-z0-9_-]+", header):
        raise BadInput("`--idempotency-header` must be the name of a header", "such as Idempotency-Key")
    return Rules(options["service"], choice, limits, options["safe"], refusals, header, options["report"])


def _parse_refusals(text: str) -> tuple[str, frozenset[int]]:
    """Return origin and statuses of "https://host=429,503"; BadInput for any other text."""
    origin, equals, listed = text.rpartition("=")
    if not equals or not re.fullmatch(r"[45]\d\d(,[45]\d\d)*", listed, re.ASCII):
        raise BadInput(
            "`--not-executed` must be an origin and statuses from 400 to 599", "such as https://api.example.com=429,503"
        )
    return origin, frozenset(map(int, listed.split(",")))
