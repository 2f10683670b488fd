"""`dataclass`, `field` and `replace` of the standard library, made in a fraction of the time.

The standard `dataclass` compiles up to eight functions for each class, and imports `inspect`. This one compiles only
`__init__`; the other methods are shared or ask the fields. Type checkers see the standard one. So does who asks
`dataclasses.fields`, `asdict` or `replace` about a class or a value: the standard description is made then.

Each class has slots. It has no order, no `ClassVar` and no fields of a base class. The methods of a base class stay:
a `Record` keeps its own. The options that it knows are `frozen` and `kw_only`, and those of `_Field`.
"""

import sys
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class _Missing:
    """The default of a parameter whose value is made by a function: `dataclasses` shows it alike."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<factory>"


_MISSING: "Any" = _Missing()


class _Field:
    """The options of one field, as the standard `field` has them. Example: see `dataclass`."""

    __slots__ = ("default", "default_factory", "init", "repr", "compare")

    def __init__(
        self,
        *,
        default: "Any" = _MISSING,
        default_factory: "Callable[[], object] | None" = None,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.default = default
        self.default_factory = default_factory
        self.init = init
        self.repr = repr
        self.compare = compare


def _decorate(*, slots: bool, frozen: bool = False, kw_only: bool = False) -> "Callable[[type[Any]], type[Any]]":
    """Return the decorator, which returns a new class, since slots cannot be added to one that is there.

    >>> @dataclass(slots=True, frozen=True)
    ... class Point:
    ...     x: int
    ...     y: int = field(default=0)
    >>> replace(Point(1), y=2)
    Point(x=1, y=2)
    """

    def make(cls: "type[Any]") -> "type[Any]":
        kinds: dict[str, Any] = cls.__annotations__
        own = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
        given = {name: own.pop(name, _MISSING) for name in kinds}
        fields = {name: each if type(each) is _Field else _Field(default=each) for name, each in given.items()}
        init = _make_init(cls, fields, frozen, kw_only)
        inherited = {name for base in cls.__mro__[1:-1] for name in vars(base)}
        methods = _make_methods(kinds, fields, frozen, kw_only)
        body = {name: each for name, each in methods.items() if name not in inherited}
        body |= own | {"__slots__": tuple(kinds), "__init__": init}
        metaclass: Any = type(cls)
        made: type[Any] = metaclass(cls.__name__, cls.__bases__, body)
        made.__qualname__ = cls.__qualname__
        return made

    return make


def _make_init(cls: "type[Any]", fields: dict[str, _Field], frozen: bool, kw_only: bool) -> "Any":
    """Compile the `__init__` of a class, whose names are looked up in the class's module."""
    parameters: list[str] = []
    lines: list[str] = []
    bound = {"_MISSING": _MISSING, "_store": object.__setattr__}
    defaults: dict[str, object] = {}
    for name, field in fields.items():
        if not field.init:
            continue  # `__post_init__` stores it
        value = name
        if field.default_factory is not None:
            bound[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _MISSING else {name}"
        if field.default_factory is not None or field.default is not _MISSING:
            defaults[name] = field.default
        parameters.append(f"{name}=None" if name in defaults else name)
        lines.append(f"_store(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if "__post_init__" in vars(cls):
        lines.append("self.__post_init__()")
    head = f"def __init__(self, {'*, ' if kw_only else ''}{', '.join(parameters)}):"
    source = f"def bind({', '.join(bound)}):\n {head}\n  {'; '.join(lines)}\n return __init__"
    made: dict[str, Any] = {}
    exec(source, vars(sys.modules[cls.__module__]), made)  # noqa: S102 - the text has nothing but names of fields
    init = made["bind"](**bound)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    kinds = {name: kind for name, kind in cls.__annotations__.items() if fields[name].init}
    init.__annotations__ = {**kinds, "return": None}
    if kw_only:
        init.__kwdefaults__ = defaults
    else:
        init.__defaults__ = tuple(defaults.values())
    return init


def _make_methods(kinds: "dict[str, Any]", fields: dict[str, _Field], frozen: bool, kw_only: bool) -> "dict[str, Any]":
    """Return the other methods and attributes, which a class may define itself instead."""
    shown = [name for name, field in fields.items() if field.repr]
    compared = attrgetter(*(name for name, field in fields.items() if field.compare))

    def show(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def equal(self: object, other: object) -> bool:
        return bool(compared(self) == compared(other)) if type(other) is type(self) else NotImplemented

    def change(self: object, **changes: object) -> object:
        return type(self)(**{name: getattr(self, name) for name in fields if fields[name].init} | changes)

    methods = {
        "__repr__": show,
        "__eq__": equal,
        "__hash__": None,
        "__replace__": change,
        "__match_args__": () if kw_only else tuple(name for name, field in fields.items() if field.init),
        "__dataclass_fields__": _Standard("__dataclass_fields__", kinds, fields, frozen, kw_only),
        "__dataclass_params__": _Standard("__dataclass_params__", kinds, fields, frozen, kw_only),
    }
    if not frozen:
        return methods

    def hash_fields(self: object) -> int:
        return hash(compared(self))

    return methods | {
        "__hash__": hash_fields,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__getstate__": _get_state,
        "__setstate__": _set_state,
    }


def _refuse_to_set(self: object, name: str, value: object) -> "NoReturn":
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> "NoReturn":
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: "Any") -> list[object]:
    return [getattr(self, name) for name in self.__slots__]


def _set_state(self: "Any", state: list[object]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)


class _Standard:
    """An attribute by which the standard module knows its classes; it is made when it is first asked for."""

    __slots__ = ("name", "kinds", "fields", "frozen", "kw_only")

    def __init__(
        self, name: str, kinds: "dict[str, Any]", fields: dict[str, _Field], frozen: bool, kw_only: bool
    ) -> None:
        self.name = name
        self.kinds = kinds
        self.fields = fields
        self.frozen = frozen
        self.kw_only = kw_only

    def __get__(self, instance: object, owner: "type[Any]") -> object:
        from dataclasses import field as make_field
        from dataclasses import make_dataclass

        listed: list[Any] = []
        for name, field in self.fields.items():
            options: dict[str, Any] = {"init": field.init, "repr": field.repr, "compare": field.compare}
            if field.default_factory is not None:
                options["default_factory"] = field.default_factory
            elif field.default is not _MISSING:
                options["default"] = field.default
            listed.append((name, self.kinds[name], make_field(**options)))
        twin = make_dataclass(owner.__name__, listed, frozen=self.frozen, kw_only=self.kw_only, slots=True)
        value: object = getattr(twin, self.name)
        setattr(owner, self.name, value)
        return value


def _replace(value: "Any", /, **changes: object) -> "Any":
    """Return a copy of a value with the fields in `changes` changed. Example: see `dataclass`."""
    return value.__replace__(**changes)


if TYPE_CHECKING:
    from dataclasses import dataclass, field, replace
else:
    dataclass, field, replace = _decorate, _Field, _replace

__all__ = ["dataclass", "field", "replace"]
