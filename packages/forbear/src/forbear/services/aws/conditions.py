"""The conditions by which an operation may be repeated, read from the parameters of a call.

A text has alternatives, joined by "|", of terms that must all hold, joined by "&". A term is one of these; a path has
the names of parameters, joined by dots:

- `key:PATH`: a text by which the service recognises a repeat, which must not be empty;
- `has:PATH`: the parameter is there, and neither empty nor "*";
- `not:PATH`: the parameter is absent, or false;
- `true:PATH`: it is True, not only there;
- `is:PATH=VALUE`: it has this value;
- `rule:NAME`: one of `RULES`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from forbear.core.check import is_list, is_mapping
from forbear.services.aws.dynamodb import is_repeatable_update, returns_new_values

Parameters = Mapping[str, Any]
Test = Callable[[Parameters], bool]

_FIFO = ".fifo"


class Alternative(NamedTuple):
    """Terms that make an operation repeatable if all `tests` hold; `text` is how a call spells them.

    `by_key` says that the service recognises the repeat, for as long as it remembers the key.
    """

    text: str
    tests: tuple[Test, ...]
    by_key: bool

    def holds(self, parameters: Parameters) -> bool:
        """Return whether parameters meet all terms; parameters of wrong types meet none."""
        try:
            for test in self.tests:
                if not test(parameters):
                    return False
        except (AttributeError, LookupError, TypeError, ValueError):
            return False
        return True


def parse(text: str) -> tuple[Alternative, ...]:
    """Return the alternatives of a text in the grammar above; () for "". ValueError for an unknown term."""
    return tuple(map(_alternative, filter(None, text.split("|"))))


def key(*names: str) -> tuple[Alternative, ...]:
    """Return alternatives of which each is one key, a parameter with this name."""
    return tuple(_alternative(f"key:{name}") for name in names)


def value_at(parameters: Parameters, path: str) -> Any:
    """Return the parameter at a path such as "DistributionConfig.CallerReference", None if it is absent."""
    value: Any = parameters
    for name in path.split("."):
        if not is_mapping(value):
            return None
        value = value.get(name)
    return value


def _alternative(text: str) -> Alternative:
    terms = [term.partition(":")[::2] for term in text.split("&")]
    by_key = any(kind == "key" or name in _BY_KEY for kind, name in terms)
    return Alternative(
        " and ".join(_TEXTS[kind].format(name) if kind != "rule" else RULES[name][0] for kind, name in terms),
        tuple(RULES[name][1] if kind == "rule" else partial(_TESTS[kind], name) for kind, name in terms),
        by_key,
    )


def _has(path: str, parameters: Parameters) -> bool:
    return value_at(parameters, path) not in (None, "", "*", [], {})


def _is_key(path: str, parameters: Parameters) -> bool:
    value = value_at(parameters, path)
    return isinstance(value, str) and value != ""


def _is_value(text: str, parameters: Parameters) -> bool:
    path, _, value = text.partition("=")
    return str(value_at(parameters, path)) == value


_TESTS: Mapping[str, Callable[[str, Parameters], bool]] = {
    "key": _is_key,
    "has": _has,
    "not": lambda path, parameters: not value_at(parameters, path),
    "true": lambda path, parameters: value_at(parameters, path) is True,
    "is": _is_value,
}
_TEXTS = {"key": "{}", "has": "{}", "not": "no {}", "true": "{}=True", "is": "{}"}


def _members_have_keys(path: str, parameters: Parameters) -> bool:
    members = parameters[path]
    return is_list(members) and bool(members) and all(member["MessageDeduplicationId"] for member in members)


def _is_fifo(name: str, parameters: Parameters) -> bool:
    return str(parameters.get(name, "")).endswith(_FIFO)


def _replaces(parameters: Parameters) -> bool:
    return all(patch["op"] == "replace" for patch in parameters["patchOperations"])


def _has_no_system_tools(parameters: Parameters) -> bool:
    tools: Any = value_at(parameters, "toolConfig.tools") or []
    return all("systemTool" not in tool for tool in tools)


RULES: Mapping[str, tuple[str, Test]] = {
    "fifo_messages": (
        "a FIFO queue and a MessageDeduplicationId for each entry",
        lambda parameters: _is_fifo("QueueUrl", parameters) and _members_have_keys("Entries", parameters),
    ),
    "fifo_notices": (
        "a FIFO topic and a MessageDeduplicationId for each entry",
        lambda parameters: (
            _is_fifo("TopicArn", parameters) and _members_have_keys("PublishBatchRequestEntries", parameters)
        ),
    ),
    "fifo_queue": ("a FIFO queue", partial(_is_fifo, "QueueUrl")),
    "fifo_topic": (
        "a FIFO topic",
        lambda parameters: _is_fifo("TopicArn", parameters) or _is_fifo("TargetArn", parameters),
    ),
    "new_values": ("ReturnValues that are none of before the write", returns_new_values),
    "no_system_tools": ("no systemTool", _has_no_system_tools),
    "replaces": ("patchOperations that only replace", _replaces),
    "update": (
        "an UpdateExpression that sets values, or a ConditionExpression that its write makes false",
        is_repeatable_update,
    ),
}
"""The rules by name: what the call must have, in words, and the test of its parameters."""

_BY_KEY = frozenset({"fifo_messages", "fifo_notices"})
