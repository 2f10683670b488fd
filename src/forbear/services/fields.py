"""Reading a field of a gRPC message by its path: a dict, a protobuf message or a proto-plus one. It imports neither.

The message libraries of Python add an underscore to a name that is Python's own ("object"), and so do dicts for them.
A field that the definition marks `optional` is present as soon as it is set, to 0 as well; any other only where it
differs from its default, since the two cannot be told apart on the wire.
"""

from typing import Any

from forbear.services.untyped import is_mapping


def field(message: object, path: str) -> object:
    """The value at `path` ("policy.etag"), None where it is not set; an enum by its name."""
    value: Any = message
    for name in path.split("."):
        value = _mapped(value, name) if is_mapping(value) else _set_in(value, name)
        if value is None:
            return None
    return value


def _mapped(message: Any, name: str) -> Any:
    value = message.get(name, message.get(f"{name}_"))
    return getattr(value, "name", value)  # a member of an enum


def _set_in(message: Any, name: str) -> Any:
    raw = getattr(message.__class__, "pb", None)  # what a proto-plus message wraps
    if raw is not None:
        message = raw(message)
    descriptor = getattr(message, "DESCRIPTOR", None)
    fields: Any = {} if descriptor is None else descriptor.fields_by_name
    definition = fields.get(name) or fields.get(f"{name}_")
    if definition is None:
        return None
    value = getattr(message, definition.name)
    if not (message.HasField(definition.name) if definition.has_presence else value):
        return None
    kinds = definition.enum_type
    if kinds is None or value not in kinds.values_by_number:
        return value
    return kinds.values_by_number[value].name
