"""One call of botocore through its attempts: it rides in the call's context, which all its events share."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from forbear.clients._botocore.outcomes import Outcome
from forbear.core.check import INFINITY
from forbear.core.report import ATTRIBUTE, Report
from forbear.core.verdict import Kind, Verdict
from forbear.evidence.sent import AwsCall, Sent
from forbear.exchange.call_state import RetriedCall, with_proof
from forbear.grpc.call import RpcSubject
from forbear.http.bodies import position, rewind
from forbear.policy import Policy
from forbear.run.answers import Broken
from forbear.run.doubt import leave_in_doubt
from forbear.run.harm import is_used
from forbear.run.key_uses import AutomaticKey
from forbear.run.keys import MARGIN, RepeatRefused, automatic_key
from forbear.run.runtime import current_runtime
from forbear.services.at_least_once import option_for
from forbear.services.aws.errors import verdict_of_exception
from forbear.services.aws.service import classify
from forbear.services.aws.vouch import AwsVouch, apply_vouch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear.exchange.call_state import Described
    from forbear.run.grant import Grant

_RESOURCES = (
    "TableName", "QueueUrl", "TopicArn", "TargetArn", "FunctionName", "StreamName", "DeliveryStreamName", "SecretId",
    "KeyId", "stateMachineArn", "logGroupName", "RoleName", "UserName", "StackName", "ClusterName", "cluster", "Name",
    "name",
)  # fmt: skip
_DEEPEST = 50
_UNREADABLE = "the body is no file that can be read again from where it was"


class ReportedMetadata(dict[str, Any]):
    """The `ResponseMetadata` of an error on which forbear gave up. It carries the report, beside its items."""

    __forbear_report__: Report


class AwsAttempts:
    """The state of one call of `operation` with `parameters`, made before its first attempt.

    `parameters` are those that are sent: botocore changes them in place until then. Copies of a context share it.
    `token` is the one that `fill_token` has filled, None for botocore's own.
    """

    __slots__ = ("_call", "_file", "_operation", "_parameters", "_start", "_vouch", "policy")

    def __init__(
        self,
        policy: Policy,
        vouch: AwsVouch,
        operation: Any,
        parameters: dict[str, Any],
        *,
        awaits: bool,
        token: AutomaticKey | None = None,
    ) -> None:
        self.policy = policy
        self._vouch = vouch
        self._operation = operation
        self._parameters = parameters
        self._file = _find_file(operation, parameters)
        self._start = position(self._file)
        self._call = RetriedCall(policy, awaits=awaits, key=token)

    def __deepcopy__(self, memo: object) -> "AwsAttempts":
        return self  # botocore copies contexts to presign a part of a request

    def enter(self) -> None:
        """Enter the call in the ledger once an attempt is signed: what fails before that was never sent.

        A call that was refused is entered anew if botocore sends it to another region of S3.
        """
        entry = self._call.entry
        if is_used[0] and (entry is None or not entry.is_open):
            self._call.enter(self._describe)

    def begin(self) -> None:
        """Count the first attempt in the policy's budget; raise Throttled, with a report, if the budget refuses it."""
        self._call.begin(lambda: self._name, self._subject)

    def succeeded(self) -> None:
        self._call.succeeded(is_large=is_used[0] and any(map(_is_large, self._parameters.values())))

    def failed(self, outcome: Outcome) -> "Grant | None":
        """Return the retry that follows a failed attempt, None to give up."""
        table = classify(self._operation, self._parameters)
        judgement, verdict = table, outcome.verdict
        try:
            call = AwsCall(self._name, self._operation, self._parameters)
            judgement = apply_vouch(table, call, self._vouch)
            verdict = self._rule(outcome)
        except Exception as broken:  # raised by a function of the user
            proven = outcome.verdict.kind is Kind.NOT_EXECUTED
            verdict = Broken(broken, Kind.NOT_EXECUTED if proven else Kind.PERMANENT)
        done = outcome.status is not None and judgement.is_maybe_done(outcome.status, outcome.code, str(outcome.error))
        option = option_for(AwsCall(self._name, self._operation, self._parameters), f'safe="{self._name}"')
        return self._call.failed(
            outcome.error,
            verdict,
            judgement.replace(maybe_done=(outcome.status,) if done else ()),
            outcome.status,
            None if self.rewind() else _UNREADABLE,
            option,
            self._subject,
            cure=f"or vouch for it with {option}" if judgement.conditions else None,
            name=outcome.name,
            answer=(outcome.status, outcome.ids),
            until=None if judgement.span is None else judgement.span * MARGIN,
            refused=outcome.status is not None and outcome.verdict.kind is Kind.PERMANENT,
        )

    def give_up(self, outcome: Outcome, response: Any) -> None:
        """Let the error of the last attempt carry the report; raise the error of a body that was cut off."""
        if outcome.is_torn:
            raise outcome.error
        report = self._call.report
        if response is not None and report is not None:
            parsed = response[1]
            metadata = ReportedMetadata(parsed.get("ResponseMetadata") or {})
            setattr(metadata, ATTRIBUTE, report)
            parsed["ResponseMetadata"] = metadata

    def _describe(self) -> "Described":
        call = AwsCall(self._name, self._operation, self._parameters)
        return Sent(
            "botocore", "aws", self._name, call
        ), lambda: apply_vouch(classify(self._operation, self._parameters), call, self._vouch).vouched

    def rewind(self) -> bool:
        """Go back to where the body was if it is a file, and return whether it can; one in memory always can."""
        return self._file is None or (self._start is not None and rewind(self._file, self._start))

    @property
    def _name(self) -> str:
        return f"{self._operation.service_model.service_name}.{self._operation.name}"

    @property
    def _subject(self) -> RpcSubject:
        parameters = self._parameters
        bucket = parameters.get("Bucket")
        if isinstance(bucket, str):
            key = parameters.get("Key")
            return RpcSubject(self._name, f"{bucket}/{key}" if isinstance(key, str) else bucket)
        named = (parameters.get(name) for name in _RESOURCES)
        return RpcSubject(self._name, next((value for value in named if isinstance(value, str)), None))

    def _rule(self, outcome: Outcome) -> Verdict:
        """Return the verdict on an outcome; a policy that is not AWS's own overrules it, but for proofs and waits."""
        served = outcome.verdict
        if self.policy.on is verdict_of_exception:
            return served
        ruled = self.policy.verdict_of_error(outcome.error)
        if ruled.kind is Kind.TRANSIENT and ruled.retry_after is None:
            ruled = ruled.replace(retry_after=served.retry_after, throttled=ruled.throttled or served.throttled)
        return with_proof(ruled, served)


def fill_token(operation: Any, parameters: dict[str, Any], name: str, context: Mapping[str, Any]) -> AutomaticKey:
    """Fill the parameter `name` with a token that is the same in all attempts of the runs around the call.

    botocore would fill a new one in each call. `context` is botocore's, which has the client. Raises RepeatRefused if
    the call may be one of an earlier attempt, but cannot have its token; a report stops the runs around.
    """
    title = f"{operation.service_model.service_name}.{operation.name}"
    span = classify(operation, {**parameters, name: "a token"}).span
    client = context.get("client_config"), context.get("client_region")  # one object for each client
    try:
        token = automatic_key(title, (*client, _digest(parameters)), INFINITY if span is None else span)
    except RepeatRefused as error:
        runtime = current_runtime()
        leave_in_doubt(error, title, str(error), runtime, runtime.monotonic())
        raise
    parameters[name] = token.key
    return token


def _digest(parameters: Mapping[str, Any]) -> object:
    """Return a digest of parameters, and an object that equals no other one if there are files and the like."""
    try:
        text = repr(_plain(parameters, 0))
    except TypeError:
        return object()
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _plain(value: Any, depth: int) -> object:
    """Return a value whose `repr` is the same for equal parameters; TypeError for one of another type."""
    kind: type[object] = value.__class__
    if kind in (str, bytes, int, float, bool, type(None)):
        return value
    if depth <= _DEEPEST and kind is dict:
        return sorted((str(name), _plain(each, depth + 1)) for name, each in value.items())
    if depth <= _DEEPEST and kind in (list, tuple):
        return [_plain(each, depth + 1) for each in value]
    if kind.__module__ in ("datetime", "decimal"):
        return repr(value)
    raise TypeError("a value whose content cannot be told")


def _is_large(value: object) -> bool:
    return isinstance(value, bytes | str | list) and len(value) > 1000  # pyright: ignore[reportUnknownArgumentType]


def _find_file(operation: Any, parameters: dict[str, Any]) -> Any:
    """Return the body of a call if it is a file, None for one in memory and for none."""
    shape = operation.input_shape
    payload = None if shape is None else shape.serialization.get("payload")
    value = None if payload is None else parameters.get(payload)
    return value if hasattr(value, "read") else None
