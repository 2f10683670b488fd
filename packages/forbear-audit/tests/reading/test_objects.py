"""The classes of objects: what defines their attributes, and of which class they are."""

import ast
import textwrap
import warnings

import pytest

from forbear_audit.reading.modules import Module
from forbear_audit.reading.names import Names


def shown(code: str) -> tuple[Module, ast.expr]:
    """The module of some code, and the expression that it passes to `SHOW`."""
    module = Module(ast.parse(textwrap.dedent(code)))
    return module, module.calls_of("SHOW")[0].args[0]


def test_each_class_is_visited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes that name each other as bases cost no more than their number."""
    names = [f"C{number}" for number in range(12)]
    code = "".join(f"class {name}({', '.join(names)}):\n    def m(self): SHOW(self.nope)\n" for name in names)
    module, attribute = shown(code)
    asked = list[str]()
    whole = Module.definition

    def noted(self: Module, expr: ast.expr) -> tuple[Names, ast.AST | None]:
        asked.append(ast.unparse(expr))
        return whole(self, expr)

    monkeypatch.setattr(Module, "definition", noted)
    assert module.definition(attribute)[1] is None
    assert len(asked) < 3 * len(names) ** 2


def test_members_and_notes_come_from_bases() -> None:
    """The nearest class that has an attribute or its annotation defines it, depth first."""
    module, attribute = shown("""
        class A:
            size: int
            def run(self): return 1
        class B(A): pass
        class C:
            size: str
            def run(self): return 2
        class D(B, C):
            def go(self): SHOW(self.run)
    """)
    assert module.definition(attribute)[1] is module.methods[module.top["A"], "run"]  # type: ignore[index]
    assert ast.unparse(module.find_note(module.top["D"], "size")[1] or attribute) == "int"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "note"),
    [
        ("client: A\ndef f(client): SHOW(client)", None),
        ("client: A\ndef f(*client): SHOW(client)", None),
        ("client: A\ndef f():\n    client = make()\n    SHOW(client)", None),
        ("client: A\ndef f(): SHOW(client)", "A"),
        ("def f(client: A):\n    def g(): SHOW(client)", "A"),
        ("def f(client: A):\n    def g(client: B): SHOW(client)", "B"),
        ("def f(*client: A): SHOW(client)", None),
        ("client: '''\n A'''\nSHOW(client)", "A"),
        ("client: '\\ud800'\nSHOW(client)", None),
        ("client: 'A)\\nimport b\\n(c'\nSHOW(client)", None),
    ],
)
def test_a_parameter_hides_the_annotation_of_a_name_around_it(code: str, note: str | None) -> None:
    """The innermost function that has a name says its type."""
    module, name = shown(code)
    found = module.note_of(name)
    assert (found and ast.unparse(found)) == note


def test_an_annotation_shows_no_warning() -> None:
    """Python's warnings about the text of an annotation are not shown."""
    module, name = shown("x: \"Literal['\\\\d']\"\nSHOW(x)")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert module.note_of(name) is None
    assert not seen
