"""The judgement on one call of AWS: by our corrections, else by botocore's model of the operation. In doubt never.

An operation is compiled when it is first judged. The order is: a row that names the operation; a token that botocore
fills; a row for a group; the traits of the model; a verb of reading; a member IfMatch. The model is one that botocore
has loaded; nothing here needs botocore itself.
"""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any, NamedTuple

from forbear.core.record import Record
from forbear.core.service import Judgement, TableEntry
from forbear.core.verdict import Safety
from forbear.services.aws import table
from forbear.services.aws.conditions import Alternative, Parameters, key, parse

_READ = re.compile(r"(?:Get|List|Describe|Head|BatchGet)(?![a-z])")
_CREATING = re.compile(
    r"(?:Batch)?(?:Create|Start|Run|Send|Publish|Submit|Invoke|Import|Export|Execute|Generate|Request|Copy|Register|Issue)"
    r"(?=[A-Z])"
)
_TOKEN = re.compile(
    r"(?:client|request|idempotency|dedup|caller|creator|unique)\w*(?:token|reference)|token", re.IGNORECASE
)
_OTHER_TOKENS = re.compile(r"(?:next|pagination|continuation|access|session|security)token", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ACTION = re.compile(
    r"\b(?:creates?|starts?|begins?|initiates?|generates?|registers?|deletes?|removes?|sends?|marks?|launch(?:es)?|"
    r"executes?|allocates?|issues?|polls?|receives?|takes|triggers?|resets?|updates?|submits?)\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"\W*(?:(?:this|the following) (?:\S+ ){0,3}?)?(?:returns?|lists?|describes?|gets?|retrieves?|provides?|displays?|"
    r"shows?|fetch(?:es)?|obtains?|reads?|quer(?:y|ies)|enumerates?|looks?|checks?|determines?|views?|searches|finds?|"
    r"computes?|reports?|downloads?|gives|outputs?|allows?|information|details|a list|use this|you can|for|the)\b",
    re.IGNORECASE,
)
_LONGEST_TEXT = 1500
_LONGEST_SENTENCE = 260


class Traits(NamedTuple):
    """The statements of the model about an operation.

    - `readonly` and `idempotent` are the traits of these names.
    - `tokens` are the members that botocore fills, equal in all attempts of a call; `keys` those of an idempotent
      operation that are named like tokens, but which only the caller sets.
    - `looks` is True for a name that begins with a verb of reading.
    - `acts` is True if the text of a read begins with a verb of action. Texts are missing where somebody has stripped
      the models.
    - `named` is False for an operation that creates something without a required name or id for it.
    - `version` is the member that holds the version to change, such as IfMatch; None without one.
    """

    readonly: bool
    idempotent: bool
    tokens: tuple[str, ...]
    keys: tuple[str, ...]
    looks: bool
    acts: bool
    named: bool
    version: str | None


def traits_of(operation: Any) -> Traits:
    """Return the traits of an operation (`OperationModel`); those that this version does not keep are False."""
    raw: Mapping[str, Any] = getattr(operation, "_operation_model", {})  # no public name has these two traits
    shape = operation.input_shape
    members: Mapping[str, Any] = {} if shape is None else shape.members
    required: tuple[str, ...] = () if shape is None else tuple(shape.required_members)
    tokens = tuple(name for name, member in members.items() if member.metadata.get("idempotencyToken"))
    name = operation.name
    readonly, idempotent = raw.get("readonly") is True, raw.get("idempotent") is True
    looks = _READ.match(name) is not None
    keys = (each for each in members if _TOKEN.fullmatch(each) and not _OTHER_TOKENS.fullmatch(each))
    return Traits(
        readonly=readonly,
        idempotent=idempotent,
        tokens=tokens,
        keys=tuple(key for key in keys if key not in tokens) if idempotent else (),
        looks=looks,
        acts=(readonly or looks) and _acts(operation.documentation),
        named=_is_named(name, required),
        version=next((each for each in members if each.lower() == "ifmatch"), None),
    )


def _acts(documentation: str) -> bool:
    text = " ".join(unescape(_TAG.sub(" ", documentation[:_LONGEST_TEXT])).split())
    first = _SENTENCE_END.split(text, 1)[0][:_LONGEST_SENTENCE]
    return _LOOKS.match(first) is None and _ACTION.search(first) is not None


def _is_named(operation: str, required: tuple[str, ...]) -> bool:
    """Return whether an operation names what it creates; True for one that creates nothing."""
    verb = _CREATING.match(operation)
    if verb is None:
        return True
    noun = operation[verb.end() :].lower()
    names = {"name", "id", f"{noun}name", f"{noun}id", f"{noun}identifier"}
    return not names.isdisjoint(map(str.lower, required))


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
    """The service for the operations of AWS; our corrections are its table. Example: see `classify`."""

    __slots__ = ()

    name: str = table.NAME

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
