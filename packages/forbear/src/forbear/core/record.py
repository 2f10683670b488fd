"""`Record`: the base of the frozen value classes; importing dataclasses would cost more than all of forbear.

The numbers of reports and of entries in the ledger are here, too: each call reads the newest one.
"""

from itertools import count

from forbear.core.check import refuse_unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, NoReturn, Self


class Shared:
    """A value of this process, `now`, which is pickled by its name: cloudpickle copies what a function uses."""

    __slots__ = ("_name", "now")

    def __init__(self, now: "Any", module: str, name: str) -> None:
        self.now = now
        self._name = module, name

    def __reduce__(self) -> "tuple[Any, ...]":
        return _find, self._name


def _find(module: str, name: str) -> "Any":
    return getattr(__import__(module, fromlist=[name]), name)


numbers = count(1)  # without a lock, which a forked child might find taken
reports_made = Shared(0, __name__, "reports_made")
"""The number of this process's newest report, or entry of the ledger (0 before the first).

While it does not change, no inner run has made a report, and no adapter an entry.
"""


class Record:
    """A frozen, comparable, picklable value. Its fields are the names in `__slots__` of its class and of the bases.

    Setting or deleting a field raises AttributeError. Only values of the same class can be equal. A subclass is a
    frozen `dataclass` of `forbear.core.dataclass`. Or it lists its own fields in `__slots__`, takes all fields by the
    same names in `__init__` and stores them with `_set`: one that `import forbear` loads, or whose parameters have
    other types than its fields.

    >>> class Point(Record):
    ...     __slots__ = ("x", "y")
    ...     def __init__(self, x, y):
    ...         self._set(x=x, y=y)
    >>> Point(1, 2).replace(y=3) == Point(1, 3)
    True
    """

    __slots__ = ()

    _names: "ClassVar[tuple[str, ...]]" = ()
    _stores: "ClassVar[dict[str, Any]]"
    """The functions that store a field each: quicker than `object.__setattr__`."""

    def __init_subclass__(cls, **options: "Any") -> None:
        super().__init_subclass__(**options)
        cls._names = tuple(name for base in reversed(cls.__mro__) for name in base.__dict__.get("__slots__", ()))
        cls._stores = {name: getattr(cls, name).__set__ for name in cls._names}

    def _set(self, **fields: object) -> None:
        stores = self._stores
        for name, value in fields.items():
            stores[name](self, value)

    @classmethod
    def _fields(cls) -> tuple[str, ...]:
        return cls._names

    def _values(self) -> "Iterator[object]":
        return (getattr(self, name) for name in self._fields())

    def replace(self, **changes: "Any") -> "Self":
        """Return a new value of the same class, with the fields in `changes` changed; the constructor checks it."""
        return type(self)(**self._arguments() | changes)

    def _arguments(self) -> "dict[str, Any]":
        """Return what `__init__` needs to make an equal value."""
        return {name: getattr(self, name) for name in self._fields()}

    def __setattr__(self, name: str, value: object) -> "NoReturn":
        raise AttributeError(f"{type(self).__name__} is immutable; derive a changed copy instead of setting `{name}`")

    def __delattr__(self, name: str) -> "NoReturn":
        raise AttributeError(f"{type(self).__name__} is immutable; `{name}` cannot be deleted")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return tuple(self._values()) == tuple(other._values())

    def __hash__(self) -> int:
        return hash((type(self), *self._values()))

    def _show_arguments(self) -> list[str]:
        """Return the arguments of the call that makes the record, without those that have their defaults."""
        init: Any = type(self).__init__
        arguments = self._arguments().items()
        if not arguments:
            return []
        values = init.__defaults__ or ()
        last = init.__code__.co_argcount
        names = init.__code__.co_varnames[last - len(values) : last]
        defaults: dict[str, Any] = {**dict(zip(names, values, strict=True)), **(init.__kwdefaults__ or {})}
        return [f"{name}={value!r}" for name, value in arguments if name not in defaults or defaults[name] != value]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._show_arguments())})"

    def __reduce__(self) -> "tuple[Any, ...]":
        return _rebuild, (type(self), self._arguments())


class UserRecord(Record):
    """The base of records that users make: a keyword that is no field is refused with the name that forbear has."""

    __slots__ = ()

    if not TYPE_CHECKING:  # pragma: no branch - a type checker knows the parameters of `__init__`

        def __new__(cls, *args, **fields):
            """Make a record; TypeError for a keyword that is no field."""
            known = cls._fields()
            if fields and not set(known).issuperset(fields):
                refuse_unknown(cls.__name__, [name for name in fields if name not in known], known)
            return super().__new__(cls)


def field_names(record: Record) -> tuple[str, ...]:
    """Return the names of a record's fields, in the order of its constructor's parameters.

    >>> field_names(forbear.Constant(1))
    ('seconds', 'spread')
    """
    return record._fields()


def _rebuild(cls: type[Record], fields: "dict[str, object]") -> Record:
    return cls(**fields)
