"""Read what botocore's model of an operation says about its safety: traits, tokens, its name, and its text.

The model is one that botocore has loaded. Nothing here needs botocore itself.
"""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any, NamedTuple

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
    """Return the traits of an operation, botocore's `OperationModel`.

    Traits that this version of botocore does not keep are False.
    """
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
