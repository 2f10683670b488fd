"""The judgement on one call of AWS: by our corrections, else by botocore's model of the operation. In doubt never.

An operation is compiled when it is first judged. The order is: a row that names the operation; a token that botocore
fills; a row for a group; the traits of the model; a verb of reading; a member IfMatch.
"""

import re
from collections.abc import Mapping
from typing import Any

from forbear.core.record import Record
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import Safety
from forbear.services.aws import table
from forbear.services.aws.conditions import Alternative, Parameters, key, parse
from forbear.services.aws.model import Traits, traits_of

_MODELS = "bedrock-runtime"
"""The service whose operations are calls of models: each execution costs money."""
_DONE = (404, 409, 412)
_DONE_CODES = re.compile(
    r"NotFound|NoSuch|Exist|Already\w|Duplicate|Conflict|InUse|Invalid\w*Stat|IncorrectState|ConditionalCheckFailed|PreconditionFailed|"
    r"TaskTimedOut|InvalidToken|ExpiredCode|CodeMismatch"
)
_DONE_TEXT = re.compile(r"\b(?:already|not exist|not found|marked (?:deleted|for deletion))\b", re.IGNORECASE)
"""The words of errors whose codes say nothing: ClientException, ValidationError, InvalidRequestException."""


class AwsJudgement(Judgement):
    """The safety of one call; `operation` is the names of service and operation, such as "dynamodb.UpdateItem".

    - `span` is the number of seconds, from the first attempt, within which a repeat is safe, because the service then
      forgets the key in the call; None where no key is needed.
    - `why` says where the judgement comes from, in words. Example: see `classify`.
    """

    __slots__ = ("span", "why")

    span: float | None
    why: str

    def __init__(
        self,
        service: str,
        operation: str | None,
        safety: Safety,
        *,
        span: float | None = None,
        why: str = "",
        **judgement: Any,
    ) -> None:
        super().__init__(service, operation, safety, **judgement)
        self._set(span=span, why=why)

    def is_maybe_done(self, status: int, code: str, text: str = "") -> bool:
        """Return whether an error after an attempt in doubt may mean that the earlier attempt worked.

        `text` is what the error says.
        """
        if not self.mutation or status >= 500:
            return False
        return status in self.maybe_done or bool(_DONE_CODES.search(code) or _DONE_TEXT.search(text))


def classify(operation: Any, parameters: Parameters) -> AwsJudgement:
    """Return the judgement on a call of an operation, as botocore's model describes it, with these parameters.

    Parameters that make no sense raise nothing and make nothing safe.

    >>> from botocore.session import Session
    >>> operation = Session().get_service_model("sqs").operation_model("SendMessage")
    >>> judgement = classify(operation, {"MessageBody": "hello"})
    >>> judgement.operation, judgement.repeatable
    ('sqs.SendMessage', False)
    """
    service = operation.service_model.service_name
    kind: type[object] = operation.__class__  # another class, another model
    name = kind, service, operation.name
    compiled = _compiled.get(name)
    if compiled is None:
        compiled = _compiled[name] = _CompiledOperation(service, operation.name, traits_of(operation))
    return compiled.judge(parameters)


class _CompiledOperation:
    """One operation, with all judgements that are possible for it made beforehand."""

    __slots__ = ("_alternatives", "_unmet")

    def __init__(self, service: str, operation: str, traits: Traits) -> None:
        safety, conditions, span, why, is_read = _find_rule(service, operation, traits)
        more = None if safety is Safety.ALWAYS else table.find_for_all(service)
        alternatives = (*conditions, *(() if more is None else more.conditions))
        if alternatives:
            safety = Safety.CONDITIONAL
        self._unmet = AwsJudgement(
            table.NAME,
            f"{service}.{operation}",
            safety,
            conditions=tuple(each.text for each in alternatives),
            repeatable=safety is Safety.ALWAYS,
            maybe_done=() if is_read else _DONE,
            mutation=not is_read,
            billed=service == _MODELS and operation != "CountTokens",
            why=why,
        )
        self._alternatives = tuple(
            (
                each,
                self._unmet.replace(
                    met=each.text, repeatable=True, span=span if each.by_key and span < _EVER else None
                ),
            )
            for each in alternatives
        )

    def judge(self, parameters: Parameters) -> AwsJudgement:
        for alternative, judgement in self._alternatives:
            if alternative.holds(parameters):
                return judgement
        return self._unmet


_Rule = tuple[Safety, tuple[Alternative, ...], float, str, bool]
_EVER = float("inf")
_compiled: dict[tuple[type[object], str, str], _CompiledOperation] = {}


def _find_rule(service: str, operation: str, traits: Traits) -> _Rule:
    """Return the safety of an operation, its conditions, the span of its key, the reason, and whether it reads."""
    row = table.find(service, operation)
    if row is not None and (row.is_exact or not traits.tokens):
        return row.safety, row.conditions, row.span, f"{row.note} ({row.source})", row.is_read
    if traits.tokens:
        return (
            Safety.CONDITIONAL,
            key(*traits.tokens),
            table.UNKNOWN_SPAN,
            "The model has a token (idempotencyToken).",
            False,
        )
    if traits.readonly and (traits.looks or not traits.acts):
        return Safety.ALWAYS, (), _EVER, "The model says that it only reads (readonly).", True
    if traits.idempotent and traits.keys:
        why = "The model says idempotent, and the operation has a key that the caller may leave out."
        return Safety.CONDITIONAL, key(*traits.keys), table.UNKNOWN_SPAN, why, False
    if traits.idempotent and traits.named:
        return Safety.ALWAYS, (), _EVER, "The model says that it may be executed twice (idempotent).", False
    if traits.looks and not traits.acts:
        return Safety.ALWAYS, (), _EVER, "A verb of reading, and the text names no action.", True
    if traits.version is not None:
        why = "The version that it changes is another one after the first attempt."
        return Safety.CONDITIONAL, parse(f"has:{traits.version}"), _EVER, why, False
    why = (
        "A verb of reading, but the text names an action." if traits.looks else "Neither a row nor the model says more."
    )
    return Safety.NEVER, (), _EVER, why, False


class Aws(Record):
    """The service for the operations of AWS: its name, and our corrections as a table. `classify` judges a call.

    Example: see `classify`.
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The service's name in judgements and reports, "aws"."""
        return table.NAME

    def tables(self) -> Mapping[str, tuple[TableEntry, ...]]:
        """Return our corrections as one table, by the name "aws", in the order of their names."""
        listed = (row for exact, patterns in table.rows().values() for row in (*exact.values(), *patterns))
        return {table.NAME: tuple(map(_entry, sorted(listed, key=lambda row: (row.service, row.pattern))))}


RECOMMENDED = Aws()
"""The service with its recommended rules."""


def _entry(row: table.Correction) -> TableEntry:
    name = f"{row.service}.{row.pattern}"
    return TableEntry(
        name,
        row.safety,
        conditions=tuple(each.text for each in row.conditions),
        is_read=row.is_read,
        source=row.source,
        effect="none" if row.is_read else row.note,
        columns={
            "operation": name,
            "safety": "read" if row.is_read else row.safety.value,
            "safe_if": row.safe_if,
            "span": f"{row.span:g}" if any(each.by_key for each in row.conditions) else "",
            "source": row.source,
            "note": row.note,
        },
    )
