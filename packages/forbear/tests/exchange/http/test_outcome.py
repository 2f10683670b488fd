"""The outcome of a first attempt: handed out once, and then let go of."""

import gc
import weakref

import pytest

from forbear.exchange.http.responses import FirstResult


def test_a_reply_is_handed_out() -> None:
    """What is no error is the reply."""
    assert FirstResult("reply").taken() == "reply"


def test_an_error_is_raised_as_it_is_and_let_go_of() -> None:
    """It is the very error, with no other in its context, and with the garbage collector off nothing keeps it alive."""

    class Lost(Exception):
        pass

    def fail() -> "weakref.ref[Lost]":
        try:
            raise Lost
        except Lost as error:
            first = weakref.ref(error)
            outcome = FirstResult[str](error)
        with pytest.raises(Lost) as caught:
            outcome.taken()
        assert caught.value is first()
        assert caught.value.__context__ is None
        del caught
        return first

    gc.collect()
    gc.disable()
    try:
        assert fail()() is None
    finally:
        gc.enable()
