"""The one walker: what an error holds, the likeliest first, each once, and never without end."""

from collections.abc import Iterable

import pytest

from forbear.core.chain import MOST, chain, entries_of, find_wrapped, innermost_of, list_errors, read, walk


class Reasoned(Exception):
    """An error with a `reason`, as urllib3's and urllib's have."""

    def __init__(self, *args: object, reason: object = None) -> None:
        super().__init__(*args)
        self.reason = reason


class Hostile(Exception):
    """An error whose attributes cannot be read."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)


def caused(error: Exception, cause: BaseException) -> Exception:
    """Return `error` with a cause."""
    error.__cause__ = cause
    return error


A, B, C, D = OSError("a"), OSError("b"), OSError("c"), OSError("d")


@pytest.mark.parametrize(
    ("error", "links"),
    [
        (A, [A]),
        (caused(RuntimeError(), A), [A]),
        (RuntimeError(A), [A]),
        (RuntimeError("lost", A), [A]),
        (RuntimeError(A, B), [A]),
        (Reasoned(reason=A), [A]),
        (Reasoned(reason="a text"), []),
        (caused(Reasoned(A, reason=B), C), [A, B, C]),
        (caused(RuntimeError(RuntimeError(A)), B), [None, A, B]),
        (caused(Reasoned(A, reason=A), A), [A]),
    ],
    ids=["itself", "cause", "argument", "later", "first", "reason", "text", "all", "deep", "once"],
)
def test_what_is_yielded(error: Exception, links: list[Exception | None]) -> None:
    """An argument is likelier than the reason, and that than the cause; what an argument wraps comes before both."""
    found = list(chain(error))
    assert found[0] is error
    rest = found if error is A else found[1:]
    assert len(rest) == len(links)
    assert all(link is None or each is link for each, link in zip(rest, links, strict=True))


def test_an_error_that_cannot_be_read_has_causes() -> None:
    """They are read without its own methods, and its attributes count as missing."""
    error = Hostile(A)
    assert read(error, "reason") is None
    assert list(chain(error)) == [error, A]
    assert find_wrapped(error) == [None, None, A]


def test_a_circle_ends() -> None:
    """Each error comes once."""
    first, second = RuntimeError(), RuntimeError()
    caused(caused(first, second), second)
    caused(second, first)
    assert list(chain(first)) == [first, second]


def test_a_chain_is_bounded() -> None:
    """A chain without end is cut after MOST errors, and a walk after the number it is given."""
    error = A
    for _ in range(2 * MOST):
        error = RuntimeError(error)  # type: ignore[assignment]
    assert len(list(chain(error))) == MOST
    assert list(walk(1, lambda number: [number + 1], 5)) == [1, 2, 3, 4, 5]


def test_the_likeliest_comes_first() -> None:
    """That is the last one of what is held, with all that it holds; what is no exception is left out of a chain."""

    def held(error: BaseException) -> Iterable[object]:
        return [D, "text", C] if error is A else [B] if error is C else []

    assert list(chain(A, held)) == [A, C, B, D]


def test_every_error_is_walked_but_those_of_the_caller() -> None:
    """Causes, suppressed contexts, groups, arguments and attributes count; what was handled at the call does not."""
    handled, cause, context, member, argument = (OSError(str(number)) for number in range(5))
    context.__context__ = handled
    group = ExceptionGroup("x", [member])
    error = Reasoned("lost", argument, reason=group)
    error.__cause__, error.__context__, error.__suppress_context__ = cause, context, True
    assert {*list_errors(error, handled, 50)} == {error, cause, context, group, member, argument}
    assert len([*list_errors(error, handled, 3)]) == 3


@pytest.mark.parametrize("name", ["reason", "orig", "last_exception", "inner_exception"])
def test_an_error_that_a_library_keeps_is_walked(name: str) -> None:
    """urllib3, SQLAlchemy, kubernetes and azure-core keep it without naming it as a cause."""
    kept, error = OSError("lost"), RuntimeError("failed")
    setattr(error, name, kept)
    assert [*list_errors(error, None, 50)] == [error, kept]


@pytest.mark.parametrize("error", [OSError(), OSError("x"), OSError(2, "x")])
def test_an_error_that_holds_none_is_walked_alone(error: Exception) -> None:
    """Most errors hold no other."""
    assert [*list_errors(error, None, 50)] == [error]


def test_a_cause_that_is_the_context_is_walked_once() -> None:
    """As after `raise ... from`; libraries hand it to the error as an argument, too."""
    cause = OSError("reset")
    error = ValueError("lost", cause)
    error.__cause__ = error.__context__ = cause
    assert list_errors(error, None, 50) == (error, cause)


def test_entries_of_a_traceback() -> None:
    """They come from the outermost, where the error is held, to the innermost, which raised it."""

    def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError) as caught:  # noqa: PT011 - it has no text
        fail()
    names = [entry.tb_frame.f_code.co_name for entry in entries_of(caught.value.__traceback__)]
    assert names == ["test_entries_of_a_traceback", "fail"]
    innermost = innermost_of(caught.value)
    assert innermost is not None
    assert innermost.tb_frame.f_code is fail.__code__


def test_an_error_that_nobody_raised_has_no_entries() -> None:
    """A response may hold such an error."""
    assert list(entries_of(None)) == []
    assert innermost_of(ValueError()) is None
