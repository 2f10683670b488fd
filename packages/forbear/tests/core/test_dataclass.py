"""`core.dataclass`: its classes behave as those of the standard library, also to that library."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import pytest

from forbear.core import dataclass as ours
from forbear.core.record import Record

T = TypeVar("T")
Use = Callable[[Any, Any, Any], Any]


def make(library: Any) -> dict[str, type[Any]]:
    """The same classes, made by a library."""

    @library.dataclass(slots=True)
    class Mutable:
        """Fields of all kinds."""

        name: str
        size: int | None = None
        tags: list[str] = library.field(default_factory=list[str])
        secret: str = library.field(default="", repr=False)
        noise: "int" = library.field(default=0, compare=False)
        made: int = library.field(init=False, compare=False)

        def __post_init__(self) -> None:
            self.made = len(self.name)

        @property
        def shout(self) -> str:
            """A method of its own."""
            return self.name.upper()

    @library.dataclass(frozen=True, slots=True)
    class Frozen(Generic[T]):
        """A value that may be a key."""

        first: T
        second: Mapping[str, int] | int = 2

        def __post_init__(self) -> None:
            if self.second == 3:
                raise ValueError("no 3")

    @library.dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        """Fields that are passed by name, and a repr of its own."""

        text: str = "a"
        number: int

        def __repr__(self) -> str:
            return f"<{self.text}>"

    return {kind.__name__: kind for kind in (Mutable, Frozen, Named)}


KINDS = {library: make(library) for library in (ours, dataclasses)}
OURS = KINDS[ours]
Frozen = OURS["Frozen"]
Frozen.__qualname__ = "Frozen"  # pickle finds it in this module

USES: dict[str, Use] = {
    "repr": lambda mutable, frozen, named: [
        repr(each).rpartition("<locals>.")[2] for each in (mutable("a", secret="b"), frozen(1), named(number=2))
    ],
    "equal": lambda mutable, frozen, named: [
        mutable("a") == mutable("a"),
        mutable("a", noise=1) == mutable("a", noise=2),
        mutable("a") == mutable("b"),
        mutable("a") == frozen("a"),
        frozen("a") == ("a", 2),
        named(number=2) != named(number=3),
    ],
    "hash": lambda mutable, frozen, named: [hash(frozen("a", 7)), hash(named(number=2)), mutable.__hash__],
    "own defaults": lambda mutable, frozen, named: mutable("a").tags is not mutable("a").tags,
    "signature": lambda mutable, frozen, named: [str(inspect.signature(each)) for each in (mutable, frozen, named)],
    "types": lambda mutable, frozen, named: mutable.__init__.__annotations__,
    "names": lambda mutable, frozen, named: [
        (each.__match_args__, each.__slots__, each.__doc__, each.__module__, each.__qualname__.rpartition(".")[2])
        for each in (mutable, frozen, named)
    ],
    "positional": lambda mutable, frozen, named: [mutable("a", 1, ["b"], "c", 4).noise, frozen(1, 4).second],
    "no parameter": lambda mutable, frozen, named: dataclasses.replace(mutable("a"), name="abc").made,
    "own methods": lambda mutable, frozen, named: mutable("a").shout,
    "generic": lambda mutable, frozen, named: [frozen[int].__args__, frozen.__parameters__],
    "assigned": lambda mutable, frozen, named: [it := mutable("a"), it.__setattr__("size", 5), it.size][1:],
    "fields": lambda mutable, frozen, named: [
        (each.name, each.type, each.default, each.init, each.repr, each.compare, each.kw_only)
        for kind in (mutable, frozen, named)
        for each in dataclasses.fields(kind)
        if each.default_factory is dataclasses.MISSING
    ],
    "asdict": lambda mutable, frozen, named: dataclasses.asdict(mutable("a", size=frozen(1), tags=["x"])),
    "replace": lambda mutable, frozen, named: [
        dataclasses.replace(mutable("a"), size=3).size, dataclasses.replace(named(number=3), text="b").text
    ],
    "subclass": lambda mutable, frozen, named: [
        each.name for each in dataclasses.fields(dataclasses.dataclass(frozen=True)(type("Sub", (frozen,), {})))
    ],
    "copy": lambda mutable, frozen, named: [
        copy.copy(each) == each and copy.deepcopy(each) == each for each in (mutable("a", tags=["b"]), frozen(1))
    ],
    "params": lambda mutable, frozen, named: [each.__dataclass_params__.frozen for each in (mutable, frozen, named)],
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_it_is_as_the_standard_one(use: str) -> None:
    """The classes of the two libraries are the same to whoever uses them."""
    ours_said, standard = (USES[use](*kinds.values()) for kinds in KINDS.values())
    assert ours_said == standard


@pytest.mark.parametrize("library", KINDS)
def test_subclasses_have_the_fields(library: Any) -> None:
    """A subclass without fields of its own is described as its base is, also if it is asked first."""
    subclass: Any = type("Sub", (make(library)["Named"],), {})
    assert dataclasses.asdict(subclass(number=2)) == {"text": "a", "number": 2}


WRONG: dict[str, Use] = {
    "missing": lambda mutable, frozen, named: mutable(),
    "unknown": lambda mutable, frozen, named: mutable("a", color=1),
    "too many": lambda mutable, frozen, named: frozen(1, 2, 3),
    "by name only": lambda mutable, frozen, named: named("a", 1),
    "checked": lambda mutable, frozen, named: frozen(1, 3),
    "replaced and checked": lambda mutable, frozen, named: dataclasses.replace(frozen(1), second=3),
    "no such field": lambda mutable, frozen, named: setattr(mutable("a"), "color", 1),
    "frozen": lambda mutable, frozen, named: setattr(frozen(1), "first", 2),
    "frozen, deleted": lambda mutable, frozen, named: delattr(frozen(1), "first"),
    "no key": lambda mutable, frozen, named: {mutable("a")},
}


@pytest.mark.parametrize("use", WRONG)
def test_errors_are_as_the_standard_ones(use: str) -> None:
    """Both libraries refuse the same, with the same error."""
    said = []
    for kinds in KINDS.values():
        with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
            WRONG[use](*kinds.values())
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


def test_replace_and_pickle() -> None:
    """`replace` of this module knows its classes, and frozen values with slots go to other processes."""
    value = ours.replace(Frozen(1), second=7)
    assert (value.first, value.second) == (1, 7)
    assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(ValueError, match="no 3"):
        ours.replace(value, second=3)


def test_the_methods_of_a_base_class_stay() -> None:
    """A record that is made so is shown, changed and compared as any other record, and refuses to be set."""

    @ours.dataclass(frozen=True, slots=True)
    class Point(Record):
        """A record of two fields."""

        x: int
        y: int = 0

    assert (repr(Point(1)), repr(Point(1).replace(y=2))) == ("Point(x=1)", "Point(x=1, y=2)")
    assert Point(1) == Point(1, 0)
    with pytest.raises(AttributeError, match="derive a changed copy"):
        Point(1).x = 2  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
