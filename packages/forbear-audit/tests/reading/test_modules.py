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


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("cfg = load()\ncfg['retries'] = 10\nSHOW(cfg['limit'])", ...),
        ("cfg = load()\ncfg['limit'] = 10\nSHOW(cfg['limit'])", 10),
        ("def f(o): o['a'] = 7\ndef g(o): SHOW(o['a'])", ...),
        ("CFG = {}\ndef f(): CFG['a'] = 7\ndef g(): SHOW(CFG['a'])", 7),
        ("class A:\n    def f(self): self.d['a'] = 7\nclass B:\n    def g(self): SHOW(self.d['a'])", ...),
        ("class A:\n    def f(self): self.d[x] = 7\n    def g(self): SHOW(self.d[y])", 7),
        ("def f(o):\n    o.cfg[x] = 7\n    SHOW(o.cfg['a'])", ...),
        ("cfg = {'a': 1}\ncfg['a'] = 2\nSHOW(cfg['a'])", ...),
        ("cfg = {'a': 1}\ncfg['b'] = 2\nSHOW(cfg['b'])", 2),
        ("SHOW({'a': 1, 'a': 2}['a'])", 2),
        ("SHOW({'a': 1, **others}['a'])", ...),
        ("SHOW({**others, 'a': 1}['a'])", 1),
        ("cfg = load()\ncfg[1] = 2\nSHOW(cfg[{'a': 1}])", ...),
    ],
)
def test_an_item_is_what_its_key_has(code: str, value: object) -> None:
    """An item is put under its own key, into the dictionary of its own scope."""
    assert read(code) == value


GET = "def get(url, tries=3, *more, last=4):\n    SHOW({})\n"


@pytest.mark.parametrize(
    ("calls", "value"),
    [
        ("", 3),
        ("get(a, 5)", 5),
        ("get(a, 5)\nget(b, tries=5)", 5),
        ("get(a, 5)\nget(b)", ...),
        ("requests.get(a, 5)\nfor one in some: one.get(a, 9)", 3),
        ("def f(one): one.get(a, tries=9)", 9),
        ("get(a, 5)\ndef f(one): one.get(a, tries=9)", ...),
        ("class A:\n    def get(self, url, tries): pass\n    def f(self): self.get(a, 9)", 3),
        ("    get(url, tries)\nget(a, 5)", 5),
        ("    get(url, tries - 1)\nget(a, 5)", ...),
        ("get(a, **options)", ...),
        ("get(*some)", ...),
        ("get(*some, tries=9)", 9),
        ("get(a, 5, **options)", 5),
        ("A = (a, 9)\nget(*A)", 9),
        ("A = (a, 9)\n" + 7 * "get(b)\n" + "get(*A)", ...),
        (7 * "get(b)\n", 3),
        (7 * "get(b, 5)\n", ...),
    ],
)
def test_a_parameter_is_what_the_calls_of_its_function_pass(calls: str, value: object) -> None:
    """Calls of other functions of that name do not count, and arguments that cannot be read leave it open."""
    assert read(GET.format("tries") + calls) == value


@pytest.mark.parametrize(("calls", "value"), [("get(*some)", 4), ("get(*some, last=9)", 9), ("get(**some)", ...)])
def test_no_position_passes_a_parameter_of_keywords(calls: str, value: object) -> None:
    """Positions that cannot be read do not matter to it."""
    assert read(GET.format("last") + calls) == value


@pytest.mark.parametrize("asks_first", [False, True])
def test_a_method_that_calls_itself_is_read_in_any_order(asks_first: bool) -> None:
    """To ask for the method first does not hide the call from its parameter."""
    module = Module(ast.parse("class A:\n    def get(self, wait=1):\n        SHOW(wait)\n        self.get(5)"))
    if asks_first:
        assert module.definition(module.calls_of("get")[0].func)[1] is module.functions[0]
    assert module.constant(module.calls_of("SHOW")[0].args[0]) == 5


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("", "A.f(A(), 3)"),
        ("", "class B(A):\n    def f(self, tries): A.f(self, 3)"),
        ("", "A().f(3)"),
        ("@classmethod", "A.f(3)"),
        ("@staticmethod", "A.f(None, 3)"),
    ],
)
def test_a_method_that_is_called_on_its_class_gets_the_object_first(kind: str, calls: str) -> None:
    """All other arguments have the same parameters as in a call on the object."""
    assert read(f"class A:\n    {kind}\n    def f(self, tries): SHOW(tries)\n{calls}") == 3


def test_what_a_call_binds_is_forgotten() -> None:
    """A value that holds within one call is not kept for the others."""
    module = Module(
        ast.parse(
            "def inner(tries=3): SHOW(tries)\ndef outer(options): inner(**options)\nouter({'tries': 9})\nouter(d)"
        )
    )
    shown, call = module.calls_of("SHOW")[0].args[0], module.calls_of("outer")[0]
    with module.bound(module.functions[1], call, module):
        assert module.constant(shown) == 9
    assert module.constant(shown) is ...


def test_a_call_is_written_out_once() -> None:
    """Each question about a call gets the same node: the tree does not grow by being asked."""
    module = Module(ast.parse("def f(o): g(**o)"))
    assert module.whole(module.calls[0]) is module.whole(module.calls[0])
