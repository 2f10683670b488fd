"""Expressions: the constants and the calls that they stand for."""

import ast

import pytest

from forbear_audit.reading.modules import Module


def read(code: str) -> object:
    """The constant that the argument of `SHOW` is in some code, Ellipsis if it is none."""
    module = Module(ast.parse(code))
    return module.constant(module.calls_of("SHOW")[0].args[0])


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("SHOW({tuple({'a': 1}): 2, 'b': 3})", {...: 2, "b": 3}),
        ("SHOW({({'a': 1},): 2})", {...: 2}),
        ("SHOW(frozenset({'a': 1}))", ("a",)),
        ("SHOW(set([1, 2]))", (1, 2)),
        ("SHOW(list('ab'))", ...),
        ("SHOW((-8) ** 0.5)", ...),
        ("SHOW(2j)", ...),
        ("SHOW(2 ** 3)", 8),
    ],
)
def test_a_constant_is_a_number_a_text_or_a_collection(code: str, value: object) -> None:
    """A collection is no key, and a complex number no number that a retry has."""
    assert read(code) == value


def test_a_parameter_hides_the_value_of_a_name_around_it() -> None:
    """A parameter is not the global of its name; it is what the only call passes."""
    assert read("tries = 9\ndef f(tries): SHOW(tries)") is ...
    assert read("tries = 9\ndef f(tries): SHOW(tries)\nf(3)") == 3
    assert read("tries = 9\ndef f(*tries): SHOW(tries)") is ...
    assert read("tries = 9\ndef f(): SHOW(tries)") == 9
