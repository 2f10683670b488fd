"""The metadata that uploads and copies give to new objects: content type, caching, storage class and custom keys."""

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any, Self, TypedDict, TypeVar

from forbear.adapters import dataclass, field
from forbear_transfer.objects import MTIME, Object

_OF_API = {
    "cacheControl": "cache_control",
    "contentDisposition": "content_disposition",
    "contentEncoding": "content_encoding",
    "contentLanguage": "content_language",
    "contentType": "content_type",
    "storageClass": "storage_class",
}
"""The attribute of an Object and of ObjectMetadata for each field of the API that a user may set."""


_F = TypeVar("_F", bound=Callable[..., Any])


class MetadataOptions(TypedDict, total=False):
    """The keyword options for metadata; the docstring of `cp` describes them. Example: see `cp`."""

    content_type: str | None
    cache_control: str | None
    content_disposition: str | None
    content_encoding: str | None
    content_language: str | None
    storage_class: str | None
    metadata: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMetadata:
    """The metadata that a user sets for new objects; None, and keys that are missing in `metadata`, are left alone.

    Example: see `plan`.
    """

    content_type: str | None = None
    cache_control: str | None = None
    content_disposition: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    storage_class: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the metadata in keyword options, and leave out other options.

        ValueError for an empty text, a text with control characters, and a reserved key of `metadata`. TypeError for
        anything but texts.
        """
        chosen = {name: options.get(name) for name in cls.__annotations__}
        custom: Mapping[Any, Any] = chosen.pop("metadata") or {}
        for name, value in chosen.items():
            if value is not None:
                _check_text(name, value)
        for key, value in custom.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TypeError(f"`metadata` must map strings to strings, got {key!r}: {value!r}")
            if not key or not key.isprintable():
                raise ValueError(f"`metadata` must have printable keys that are not empty, got {key!r}")
            if key == MTIME:
                raise ValueError(f"`metadata` must not set {MTIME}, which holds the modification time; use another key")
        return cls(**chosen, metadata=dict(custom))

    def __bool__(self) -> bool:
        """Return whether anything is set."""
        return any(getattr(self, name) for name in self.__slots__)

    def options(self) -> MetadataOptions:
        """Return the metadata as keyword options, for functions that take them."""
        return MetadataOptions(
            content_type=self.content_type,
            cache_control=self.cache_control,
            content_disposition=self.content_disposition,
            content_encoding=self.content_encoding,
            content_language=self.content_language,
            storage_class=self.storage_class,
            metadata=self.metadata,
        )

    def is_of(self, there: Object) -> bool:
        """Return whether an object has all that is set."""
        values = all(getattr(self, name) in (None, getattr(there, name)) for name in _OF_API.values())
        return values and self.metadata.items() <= dict(there.metadata).items()

    def over(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        """Return the resource of an object, as the API has it, with this metadata in it.

        The keys of `metadata` are added to those of the resource.
        """
        chosen = {name: value for name, attribute in _OF_API.items() if (value := getattr(self, attribute)) is not None}
        return {**resource, **chosen, "metadata": {**resource.get("metadata", {}), **self.metadata}}


NO_METADATA = ObjectMetadata()


def writable_resource(version: Object) -> dict[str, Any]:
    """Return all metadata of an object that its owner may set, as the API has it, for a copy that changes some of it.

    The storage class is left out: by default, a copy has that of its bucket.
    """
    values = {name: getattr(version, attribute) for name, attribute in _OF_API.items() if name != "storageClass"}
    values["customTime"] = version.custom_time
    return {name: value for name, value in values.items() if value is not None} | {"metadata": dict(version.metadata)}


def has_metadata(there: Object, wanted: Mapping[str, Any]) -> bool:
    """Return whether an object has the metadata in `wanted`, a resource as the API has it."""
    expected = {_OF_API[name]: value for name, value in wanted.items() if name in _OF_API}
    return there.metadata == wanted["metadata"] and all(
        getattr(there, name) == value for name, value in expected.items()
    )


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"`{name}` must be a string, got {type(value).__name__}")
    if not value or not value.isprintable():
        raise ValueError(f"`{name}` must be printable and not empty, got {value!r}")


def with_keywords(options: type) -> Callable[[_F], _F]:
    """Return a decorator that shows the keys of a TypedDict as keyword parameters in a function's signature.

    This is for help() and editors. The keys replace the last parameter (`**options`). The default shown is False for a
    bool, else None.
    """

    def decorate(function: _F) -> _F:
        plain = signature(function)
        *parameters, _ = plain.parameters.values()
        for name, kind in options.__annotations__.items():
            default = False if kind is bool else None
            parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
        untyped: Any = function
        untyped.__signature__ = plain.replace(parameters=parameters)
        return function

    return decorate


def check_keywords(function: str, options: type, keywords: Mapping[str, object]) -> None:
    """Raise TypeError for a keyword that is no key of the TypedDict `options`, with the text that Python uses.

    `function` is the name of the called function, for that text.
    """
    for name in keywords.keys() - options.__annotations__.keys():
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")
