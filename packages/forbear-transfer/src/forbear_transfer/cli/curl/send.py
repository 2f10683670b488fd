"""The run of `forbear curl`: send the request and those that redirects lead to, and write the last response."""

import signal
import sys
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager
from types import FrameType

import click
import httpx

from forbear import Api, IdempotencyKey, NoAnswer, Policy, services
from forbear.adapters import (
    Judgement,
    Overrides,
    ProfileChoice,
    Request,
    Vouch,
    apply_vouch,
    current_runtime,
    dataclass,
    explain_request,
    field,
    policy_for_request,
    redact,
)
from forbear.answers import Answer
from forbear.cli.kit.options import PolicyOptions, apply_options
from forbear.cli.kit.output import BadInput, EventPrinter, Problem, tell
from forbear.clients.httpx import RetryTransport
from forbear_transfer.cli.curl.connect import CurlTransport
from forbear_transfer.cli.curl.errors import (
    HTTP_ERROR,
    TOO_MANY_REDIRECTS,
    WRONG_URL,
    CurlFailed,
    failure_of,
    is_of_run,
)
from forbear_transfer.cli.curl.hop import BadRedirect, Hop, next_hop
from forbear_transfer.cli.curl.output import Sink, file_or_stdout, format_output, head_of, open_sink
from forbear_transfer.cli.curl.report import HopReport, print_json
from forbear_transfer.cli.curl.settings import CurlSettings


@dataclass(frozen=True, slots=True)
class Rules:
    """The options of forbear for a run: service, profile, limits and backoff, and what the user vouches for.

    `report` is "text", "json" or "none".
    """

    service: str | None
    profile: ProfileChoice
    policy: PolicyOptions
    safe: tuple[str, ...] = ()
    not_executed: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    idempotency_header: str | None = None
    report: str = "text"

    def policy_for(self, hop: Hop) -> "tuple[Policy, Judgement]":
        """Return the policy for a request, and the judgement on it, with what the user vouches for."""
        request = hop.request
        policy, service = policy_for_request(request, self.service, self.profile)
        judgement = apply_vouch(service.classify(request), request, Vouch(self.safe, self.apis_for(request)))
        return self.adjust(policy), judgement

    def adjust(self, policy: Policy) -> Policy:
        limits, backoff = apply_options(policy.limits, policy.backoff, self.policy)
        return policy.with_limits(limits).with_backoff(backoff)

    def apis_for(self, request: Request) -> tuple[Api, ...]:
        """Return the APIs of the options, with the key that writes to the origin of `request` get.

        The user named that origin by the URL. A service that forbear knows gets no key.
        """
        scheme, host, port = request.origin
        apis = [Api(origin, not_executed=statuses) for origin, statuses in self.not_executed.items()]
        if self.idempotency_header is None or services.find(host, request.target) is not None:
            return tuple(apis)
        key = IdempotencyKey(self.idempotency_header, add=True)
        own = next((api for api in apis if api.is_for(request.origin)), None)
        if own is not None:
            return tuple(api.replace(key=key) if api is own else api for api in apis)
        return (*apis, Api(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}", key=key))

    def answer(self, request: Request) -> Answer:
        overrides = Overrides(Vouch(self.safe, self.apis_for(request)), self.adjust)
        return explain_request(request, self.service, self.profile, overrides)


class CurlRun:
    """One run: the request of a command line, its redirects, and the reports on them."""

    def __init__(self, settings: CurlSettings, rules: Rules) -> None:
        self._settings = settings
        self._rules = rules
        self._reports: list[HopReport] = []
        self._transport = CurlTransport(settings, self._count_sent)
        self._started = current_runtime().monotonic()

    def run(self, hop: Hop, typed_url: str) -> None:
        """Send `hop` and what it redirects to, and write the last response; CurlFailed if that fails.

        `typed_url` is the URL of the command line. The output is opened before anything is sent.
        """
        code = 1
        try:
            with ExitStack() as stack, _end_by_signals():
                name = self._settings.values.get("dump-header")
                dump = None if name is None else stack.enter_context(file_or_stdout(name))
                sink = stack.enter_context(open_sink(self._settings, typed_url))
                retrying = RetryTransport(
                    transport=self._transport,
                    safe=self._rules.safe,
                    apis=self._rules.apis_for(hop.request),
                )
                self._follow(stack.enter_context(retrying), hop, dump, sink)
            code = 0
        except (Problem, NoAnswer) as error:
            code = error.exit_code if isinstance(error, Problem) else BadInput.exit_code
            self._write_out(None, code, 0)
            raise
        except Exception as error:
            if not is_of_run(error):
                raise
            failure = failure_of(error)
            code = failure.exit_code
            self._write_out(None, code, 0)
            raise failure from None
        except KeyboardInterrupt:
            code = 130
            raise
        except SystemExit as ended:  # by a signal
            code = ended.code if isinstance(ended.code, int) else code
            raise
        finally:
            if self._rules.report == "json":
                print_json(self._reports, code, current_runtime().monotonic() - self._started)

    def _follow(self, transport: httpx.BaseTransport, hop: Hop, dump: Sink | None, sink: Sink) -> None:
        settings, heads = self._settings, b""
        while True:
            with closing(self._send(transport, hop)) as response:
                heads += head_of(response)
                following = self._next(hop, response)
                if following is None:
                    if dump is not None:
                        dump.write(heads)
                        dump.finish()
                    shown = heads if settings.has("include", "head") or hop.method == "HEAD" else b""
                    self._finish(response, shown, sink)
                    return
            hop = following

    def _finish(self, response: httpx.Response, head: bytes, sink: Sink) -> None:
        failed = response.status_code >= 400 and self._settings.has("fail", "fail-with-body")
        if not failed or self._settings.has("fail-with-body"):
            if head:
                sink.write(head)
            if not self._settings.has("head"):
                for chunk in response.iter_bytes() if self._settings.has("compressed") else response.iter_raw():
                    sink.write(chunk)
            sink.finish()
        self._write_out(response, HTTP_ERROR if failed else 0, sink.size)
        if failed:
            raise CurlFailed(f"the server responded with {response.status_code}", HTTP_ERROR)

    def _send(self, transport: httpx.BaseTransport, hop: Hop) -> httpx.Response:
        policy, judgement = self._rules.policy_for(hop)
        printer = EventPrinter(policy.limits.attempts) if self._rules.report == "text" else None
        report = HopReport(hop, judgement, printer)
        self._reports.append(report)
        if self._settings.has("verbose"):
            what = judgement.operation or f"{hop.method} on a host that no table knows"
            doubt = "may be executed twice" if judgement.repeatable else "must not be executed twice"
            tell(f"* {what}: {doubt} ({judgement.service}, {judgement.safety.value})")
        extensions = {"timeout": self._transport.timeouts, "forbear": policy.with_on_event(report)}
        message = hop.message(extensions)
        try:
            response = transport.handle_request(message)  # a client would also parse the Location, which may be no URL
        except httpx.RequestError as error:
            error.request = message
            raise
        response.request = message
        report.status = response.status_code
        if self._settings.has("verbose"):
            for line in head_of(response).decode("latin-1").split("\r\n")[:-2]:
                tell(f"< {line}")
        return response

    def _next(self, hop: Hop, response: httpx.Response) -> Hop | None:
        if not self._settings.has("location"):
            return None
        try:
            following = next_hop(hop, response.status_code, response.headers.get("location"), self._settings)
        except BadRedirect as error:
            raise CurlFailed(str(error), WRONG_URL, "leave -L out to see the redirect") from None
        most = self._settings.max_redirects
        if following is not None and len(self._reports) > most:
            raise CurlFailed(f"more than {most} redirects", TOO_MANY_REDIRECTS, "--max-redirs N allows more")
        return following

    def _write_out(self, response: httpx.Response | None, code: int, size: int) -> None:
        """Print what `-w` asks for, once a run; without a response, the status is 000, as in curl."""
        template = self._settings.values.pop("write-out", None)
        if template is None or not self._reports:
            return
        hop = self._reports[-1].hop
        status = 0 if response is None else response.status_code
        variables = {
            "content_type": "" if response is None else response.headers.get("content-type", ""),
            "exitcode": code,
            "http_code": f"{status:03}",
            "http_version": "0" if response is None else response.http_version.removeprefix("HTTP/"),
            "method": hop.method,
            "num_redirects": len(self._reports) - 1,
            "num_retries": sum(report.retries for report in self._reports),
            "response_code": f"{status:03}",
            "scheme": hop.url.scheme,
            "size_download": size,
            "time_total": f"{current_runtime().monotonic() - self._started:.6f}",
            "url_effective": str(hop.url),
        }
        click.echo(format_output(template, variables), nl=False)

    def _count_sent(self, request: httpx.Request) -> None:
        if self._settings.has("verbose"):
            host, target = request.url.host, request.url.raw_path.decode("ascii")
            target = redact(f"{host}{target}").removeprefix(host)  # the host says which path is the secret of a webhook
            tell(f"> {request.method} {target}")
            for name, value in request.headers.items():
                tell(f"> {name}: {value}")


@contextmanager
def _end_by_signals() -> Generator[None]:
    """Exit with 128 + n when SIGTERM or SIGHUP arrives, so that the part file of a response is deleted.

    A signal that is ignored or has a handler keeps that. Outside the main thread, the block runs without this.
    """

    def end(signum: int, frame: FrameType | None) -> None:
        sys.exit(128 + signum)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    handled = [signum for signum in signals if signal.getsignal(signum) is signal.SIG_DFL]
    for signum in handled:
        signal.signal(signum, end)
    try:
        yield
    finally:
        for signum in handled:
            signal.signal(signum, signal.SIG_DFL)
