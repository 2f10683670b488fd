"""Records: frozen, comparable, hashable, picklable, printable."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear.core.admission import ActiveShare, ClientThrottle, RequestRatio
from forbear.core.attempt import Attempt
from forbear.core.backoff import Constant, Exponential, Sequence
from forbear.core.budget import Ratio, Throttle, TokenBucket
from forbear.core.decide import Reason
from forbear.core.events import BudgetDegraded, BudgetRestored, Failed, GaveUp, Recovered, Scheduled
from forbear.core.limits import Limits
from forbear.core.record import Record, field_names, reports_made
from forbear.core.report import Report
from forbear.core.verdict import TRANSIENT, Verdict

FAILURE = Attempt(1, "OSError", "lost", 0.5, 2)
REPORT = Report("op", (Attempt(1, "OSError", "lost", 0.5),), 0.5, Reason.ATTEMPTS, "limit of 1 attempt reached")
RECORDS: list[Record] = [
    Exponential(),
    Constant(1),
    Sequence([1, 2]),
    Limits(),
    TRANSIENT,
    TokenBucket(),
    Throttle(),
    Ratio(),
    RequestRatio(),
    ActiveShare(),
    ClientThrottle(),
    FAILURE,
    REPORT,
    Failed("op", 1, 0.5, None, "lost", TRANSIENT, "OSError"),
    Scheduled("op", 2, 0.5, 2, FAILURE),
    Recovered("op", 2, 2.5, (FAILURE,)),
    GaveUp("op", REPORT),
    BudgetDegraded("shared budget b", "down", 1.5),
    BudgetRestored("shared budget b", 20.0),
]

every_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)


class Point(Record):
    """A record of two fields."""

    __slots__ = ("x", "y")

    x: object
    y: object

    def __init__(self, x: object, y: object = 0) -> None:
        self._set(x=x, y=y)


class Point3(Point):
    """A record that inherits two fields and adds one."""

    __slots__ = ("z",)

    z: object

    def __init__(self, x: object, y: object, z: object) -> None:
        super().__init__(x, y)
        self._set(z=z)


@every_record
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_records_survive_pickling(record: Record, protocol: int) -> None:
    """It comes back equal by every protocol."""
    assert pickle.loads(pickle.dumps(record, protocol)) == record


@every_record
def test_copies_are_equal(record: Record) -> None:
    """Copies are equal, and so is a derived one without changes."""
    assert copy.copy(record) == copy.deepcopy(record) == record.replace() == record


@every_record
def test_equal_records_hash_alike(record: Record) -> None:
    """So that they can be keys."""
    assert len({record, record.replace()}) == 1


@every_record
def test_field_names(record: Record) -> None:
    """They are the parameters of the constructor."""
    assert type(record)(**{name: getattr(record, name) for name in field_names(record)}) == record


@every_record
def test_fields_cannot_be_changed(record: Record) -> None:
    """No field can be set or deleted, and none added."""
    name = record._fields()[0]
    before = getattr(record, name)
    kind = type(record).__name__
    with pytest.raises(AttributeError) as caught:
        setattr(record, name, None)
    assert str(caught.value) == f"{kind} is immutable; derive a changed copy instead of setting `{name}`"
    with pytest.raises(AttributeError) as caught:
        delattr(record, name)
    assert str(caught.value) == f"{kind} is immutable; `{name}` cannot be deleted"
    with pytest.raises(AttributeError):
        record.extra = 1
    assert getattr(record, name) is before
    assert not hasattr(record, "__dict__")


def test_a_record_is_printed_as_one_writes_it() -> None:
    """The class and its fields by name, as one would write it."""
    assert repr(Point(1, "a")) == "Point(x=1, y='a')"
    assert repr(Point3(1, 2, 3)) == "Point3(x=1, y=2, z=3)"


def test_a_derived_record_leaves_the_original_alone() -> None:
    """A copy with some fields changed; the original stays."""
    point = Point3(1, 2, 3)
    assert point.replace(y=5) == Point3(1, 5, 3)
    assert point == Point3(1, 2, 3)
    with pytest.raises(TypeError):
        point.replace(w=1)


def test_derived_copies_are_checked() -> None:
    """The constructor sees the changed fields."""
    with pytest.raises(ValueError, match="`attempts`"):
        Limits().replace(attempts=0)


def test_records_are_compared_by_type_and_fields() -> None:
    """By type and all fields, those of the parent included."""
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != Point(2, 2)
    assert Point3(1, 2, 3) != Point3(1, 3, 3)
    assert Point(1, 2) != (1, 2)
    assert Constant(1, spread=1) != Point(1, 1)
    assert Point3(1, 2, 3) != Point(1, 2)
    assert hash(Point(1, 2)) != hash(Point(2, 1))
    assert hash(Constant(1, spread=1)) != hash(Point(1.0, 1.0))


def test_another_type_may_answer() -> None:
    """A record leaves the comparison with strangers to them."""

    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    assert Point(1, 2) == Equal()


@given(st.tuples(st.integers(), st.integers()), st.tuples(st.integers(), st.integers()))
def test_records_compare_as_their_fields_do(left: tuple[int, int], right: tuple[int, int]) -> None:
    """No more and no less."""
    assert (Point(*left) == Point(*right)) == (left == right)


def test_subclasses_of_verdicts_are_not_verdicts() -> None:
    """A record of a subclass is another value, for it may mean something else."""

    class Mine(Verdict):
        __slots__ = ()

    assert Mine(TRANSIENT.kind) != TRANSIENT


class Nothing(Record):
    """A record without fields."""

    __slots__ = ()


def test_a_record_without_fields_shows_its_name() -> None:
    """Its repr is the call that makes it."""
    assert repr(Nothing()) == "Nothing()"


def test_an_unknown_keyword_is_refused_with_the_one_to_write() -> None:
    """Records that users make name the keyword, and the one that forbear has."""
    with pytest.raises(TypeError, match="`Limits` takes no `max_tries`: write `attempts`"):
        Limits(max_tries=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_a_shared_value_is_that_of_its_process() -> None:
    """A copy of a function in another process, as cloudpickle makes, must not count for itself."""
    assert pickle.loads(pickle.dumps(reports_made)) is reports_made
