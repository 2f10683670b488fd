"""The names that an adapter, or a program close to forbear, needs beyond the public names of `forbear`.

forbear's own siblings (transfers, the audit, the simulator) import nothing deeper, and you need not either. A name here
changes only with a line in the CHANGELOG, but that may be in any release: the siblings pin the exact version. A name is
loaded when it is first used. docs/http.md has the steps for an adapter, and examples/adapter is one.

- **The exchange of an HTTP request.** A port is a subclass of `HttpPort` or `AsyncHttpPort`, or of `AsyncHttpSender` if
  it continues no bodies; `drive` or `adrive` sends its request. `HttpOptions` are the options of an adapter; for a
  policy taken elsewhere, `refuse_for_clients` checks what a client cannot do. `Variation` is what an attempt sends, and
  `HttpBody` its body: a `FixedBody`, `SeekableBody`, `RenderedBody`, `OnceBody` or `AsyncOnceBody`. `streamed_body`
  makes the one that fits. A `BodyReader` or `AsyncBodyReader` continues the body of a response that breaks. `on_result`
  sees bodies of up to `MOST_SHOWN` bytes.
- **A run without an exchange.** `Run` is the state of one run, and `Spending` its part of a budget. It takes each
  `Failure` or `DetailedFailure`, and answers with a `Grant`. `admit` counts the first attempt, `count_success` a
  success. `HostBudgets` are those of `Budget.per_host`. `retries_are_off` says whether to retry at all.
  `current_runtime` returns the `Runtime`, which has clock, sleep and randomness; `runtime_context` replaces it.
- **What the wire says.** The service of a `Request` (`forbear.services.find`) returns its `Judgement`. `apply_vouch`
  adds the user's `Vouch`. `suggest_patterns` says how to vouch for a request. `judge_rpc` judges a `GrpcCall`,
  `describe_command` a command of Redis. `TRANSIENT_STATUSES`, `status_phrase`, `parse_content_range`, `parse_size` and
  `request_ids` (as `RequestIds`) read responses. `add_wait` adds the wait of `find_wait` to a verdict.
- **Answers.** A `CurlLine` reads a curl line, which begins as `is_curl` says; `takes_next` tells options with a value.
  `explain_request` answers about a `Request` as `forbear.explain` does, for a `ProfileChoice` and with the `Overrides`
  of a user; `policy_for_request` finds its policy and service. `hide_in_path` is its path without secrets.
- **Reports.** `attach_report` puts a report on an error. A response carries it as its attribute `REPORT_ATTRIBUTE`.
  `error_text` is the text of an error, whatever its class does. `error_chain` yields an error and all that it wraps.
- **Redaction.** `redact` hides secrets by their shape, `redact_address` those of an address, and `conceal` makes one
  without a shape known. `HiddenText` and `HiddenBytes` do not show themselves in tracebacks. `printable` escapes
  control characters.
- **Records and arguments.** `Record` is the base of frozen values, and `field_names` lists their fields. `dataclass`,
  `field` and `replace` are those of the standard library for a program that starts quickly.
  `check_at_least`, `check_positive_seconds`, `is_mapping`, `is_list`, `shown_value` and `parse_duration` check what
  users pass. `find_policy` (or `AmbiguousPolicyName`) and `policy_names` know policies by name. `lazy_exports` makes a
  package load its names when they are first used.
- **Budgets for simulations.** A `BudgetRule` counts in micro-tokens (`micro_tokens`, `MICRO_PER_TOKEN`), over a window
  of `WINDOW_SLOTS`. A `ProcessShare` is the part of a process in a shared budget, which may be a `LocalBucket`. It
  answers with a bool or a `PendingGrant`, and pays in every `PAYMENT_SECONDS`. `JITTERS` names the kinds of jitter.
"""

from forbear.core.lazy import exports as lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.answers.curl import CurlLine, is_curl, takes_next
    from forbear.answers.http import Overrides, hide_in_path
    from forbear.answers.http import answer as explain_request
    from forbear.answers.http import policy_for as policy_for_request
    from forbear.answers.profile import ProfileChoice
    from forbear.core.attempt import RequestIds
    from forbear.core.backoff import JITTERS
    from forbear.core.budget import MICRO as MICRO_PER_TOKEN
    from forbear.core.budget import SLOTS as WINDOW_SLOTS
    from forbear.core.budget import micro as micro_tokens
    from forbear.core.chain import chain as error_chain
    from forbear.core.check import at_least as check_at_least
    from forbear.core.check import is_list, is_mapping
    from forbear.core.check import positive_seconds as check_positive_seconds
    from forbear.core.check import shown as shown_value
    from forbear.core.dataclass import dataclass, field, replace
    from forbear.core.protocols import BudgetRule
    from forbear.core.record import Record, field_names
    from forbear.core.report import ATTRIBUTE as REPORT_ATTRIBUTE
    from forbear.core.report import attach as attach_report
    from forbear.core.report import text_of as error_text
    from forbear.core.service import Judgement
    from forbear.exchange.call_state import refuse_for_clients
    from forbear.exchange.http.adrive import AsyncPort as AsyncHttpPort
    from forbear.exchange.http.adrive import AsyncSender as AsyncHttpSender
    from forbear.exchange.http.adrive import drive as adrive
    from forbear.exchange.http.areader import AsyncReader as AsyncBodyReader
    from forbear.exchange.http.drive import Port as HttpPort
    from forbear.exchange.http.drive import drive
    from forbear.exchange.http.options import HttpOptions
    from forbear.exchange.http.reader import Reader as BodyReader
    from forbear.exchange.http.responses import SHOWN as MOST_SHOWN
    from forbear.exchange.http.send import Body as HttpBody
    from forbear.exchange.http.send import Fixed as FixedBody
    from forbear.exchange.http.send import Rendered as RenderedBody
    from forbear.exchange.http.send import Seekable as SeekableBody
    from forbear.exchange.http.send import Variation
    from forbear.exchange.http.send import body_of_stream as streamed_body
    from forbear.exchange.redis.descriptions import describe_command
    from forbear.grpc.call import GrpcCall
    from forbear.http.bodies import AsyncOnce as AsyncOnceBody
    from forbear.http.bodies import Once as OnceBody
    from forbear.http.patterns import suggest_patterns
    from forbear.http.ranges import number as parse_size
    from forbear.http.ranges import parse as parse_content_range
    from forbear.http.request import Request, request_ids
    from forbear.http.status import TRANSIENT_STATUSES
    from forbear.http.status import reason as status_phrase
    from forbear.http.vouch import Vouch, apply_vouch
    from forbear.run.budget import HostBudgets
    from forbear.run.failure import DetailedFailure, Failure
    from forbear.run.grant import Grant
    from forbear.run.runtime import Runtime, current_runtime
    from forbear.run.runtime import current as runtime_context
    from forbear.run.spending import Spending, admit
    from forbear.run.spending import succeeded as count_success
    from forbear.run.state import Run
    from forbear.run.switch import is_off as retries_are_off
    from forbear.services.policies import AmbiguousName as AmbiguousPolicyName
    from forbear.services.policies import find_policy, policy_names
    from forbear.services.rpcs.rules import judge as judge_rpc
    from forbear.shared_budget.process import PAYMENT as PAYMENT_SECONDS
    from forbear.shared_budget.process import PendingGrant, ProcessShare
    from forbear.shared_budget.script import LocalBucket
    from forbear.text.duration import parse_duration
    from forbear.text.redact import HiddenBytes, HiddenText, conceal, printable, redact
    from forbear.text.redact import without_user as redact_address
    from forbear.waits import add_wait, find_wait

__all__ = [
    "JITTERS",
    "MICRO_PER_TOKEN",
    "MOST_SHOWN",
    "PAYMENT_SECONDS",
    "REPORT_ATTRIBUTE",
    "TRANSIENT_STATUSES",
    "WINDOW_SLOTS",
    "AmbiguousPolicyName",
    "AsyncBodyReader",
    "AsyncHttpPort",
    "AsyncHttpSender",
    "AsyncOnceBody",
    "BodyReader",
    "BudgetRule",
    "CurlLine",
    "DetailedFailure",
    "Failure",
    "FixedBody",
    "Grant",
    "GrpcCall",
    "HiddenBytes",
    "HiddenText",
    "HostBudgets",
    "HttpBody",
    "HttpOptions",
    "HttpPort",
    "Judgement",
    "LocalBucket",
    "OnceBody",
    "Overrides",
    "PendingGrant",
    "ProcessShare",
    "ProfileChoice",
    "Record",
    "RenderedBody",
    "Request",
    "RequestIds",
    "Run",
    "Runtime",
    "SeekableBody",
    "Spending",
    "Variation",
    "Vouch",
    "add_wait",
    "admit",
    "adrive",
    "apply_vouch",
    "attach_report",
    "check_at_least",
    "check_positive_seconds",
    "conceal",
    "count_success",
    "current_runtime",
    "dataclass",
    "describe_command",
    "drive",
    "error_chain",
    "error_text",
    "explain_request",
    "field",
    "field_names",
    "find_policy",
    "find_wait",
    "hide_in_path",
    "is_curl",
    "is_list",
    "is_mapping",
    "judge_rpc",
    "lazy_exports",
    "micro_tokens",
    "parse_content_range",
    "parse_duration",
    "parse_size",
    "policy_for_request",
    "policy_names",
    "printable",
    "redact",
    "redact_address",
    "refuse_for_clients",
    "replace",
    "request_ids",
    "retries_are_off",
    "runtime_context",
    "shown_value",
    "status_phrase",
    "streamed_body",
    "suggest_patterns",
    "takes_next",
]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    _HOMES = {
        "answers.curl": "CurlLine is_curl takes_next",
        "answers.http": "Overrides explain_request=answer hide_in_path policy_for_request=policy_for",
        "answers.profile": "ProfileChoice",
        "core.attempt": "RequestIds",
        "core.backoff": "JITTERS",
        "core.budget": "MICRO_PER_TOKEN=MICRO WINDOW_SLOTS=SLOTS micro_tokens=micro",
        "core.chain": "error_chain=chain",
        "core.check": (
            "check_at_least=at_least check_positive_seconds=positive_seconds is_list is_mapping shown_value=shown"
        ),
        "core.dataclass": "dataclass field replace",
        "core.protocols": "BudgetRule",
        "core.record": "Record field_names",
        "core.report": "REPORT_ATTRIBUTE=ATTRIBUTE attach_report=attach error_text=text_of",
        "core.service": "Judgement",
        "exchange.call_state": "refuse_for_clients",
        "exchange.http.adrive": "AsyncHttpPort=AsyncPort AsyncHttpSender=AsyncSender adrive=drive",
        "exchange.http.areader": "AsyncBodyReader=AsyncReader",
        "exchange.http.drive": "HttpPort=Port drive",
        "exchange.http.options": "HttpOptions",
        "exchange.http.reader": "BodyReader=Reader",
        "exchange.http.responses": "MOST_SHOWN=SHOWN",
        "exchange.http.send": (
            "FixedBody=Fixed HttpBody=Body RenderedBody=Rendered SeekableBody=Seekable Variation "
            "streamed_body=body_of_stream"
        ),
        "exchange.redis.descriptions": "describe_command",
        "grpc.call": "GrpcCall",
        "http.bodies": "AsyncOnceBody=AsyncOnce OnceBody=Once",
        "http.patterns": "suggest_patterns",
        "http.ranges": "parse_content_range=parse parse_size=number",
        "http.request": "Request request_ids",
        "http.status": "TRANSIENT_STATUSES status_phrase=reason",
        "http.vouch": "Vouch apply_vouch",
        "run.budget": "HostBudgets",
        "run.failure": "DetailedFailure Failure",
        "run.grant": "Grant",
        "run.runtime": "Runtime current_runtime runtime_context=current",
        "run.spending": "Spending admit count_success=succeeded",
        "run.state": "Run",
        "run.switch": "retries_are_off=is_off",
        "services.policies": "AmbiguousPolicyName=AmbiguousName find_policy policy_names",
        "services.rpcs.rules": "judge_rpc=judge",
        "shared_budget.process": "PAYMENT_SECONDS=PAYMENT PendingGrant ProcessShare",
        "shared_budget.script": "LocalBucket",
        "text.duration": "parse_duration",
        "text.redact": "HiddenBytes HiddenText conceal printable redact redact_address=without_user",
        "waits": "add_wait find_wait",
    }
    """The names by the module that defines them; NAME=ORIGINAL for one that is called otherwise there."""

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            name: f"{module}:{original or name}"
            for module, names in _HOMES.items()
            for name, _, original in (each.partition("=") for each in names.split())
        },
        below="forbear",
    )
