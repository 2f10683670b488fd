"""Functions that call themselves, as the loops that do the same."""

import ast
import textwrap

import pytest

from forbear_audit.loops import recursion
from forbear_audit.loops.recursion import find_recursions
from forbear_audit.reading.modules import Module

CODE = """
class Api:
    {decorator}
    def fetch({first}url, attempt=0):
        try:
            return get(url)
        except OSError:
            return {owner}.fetch(url, attempt + 1)
"""


@pytest.mark.parametrize(
    ("decorator", "first", "owner"),
    [("@staticmethod", "", "Api"), ("@classmethod", "cls, ", "cls"), ("@override", "self, ", "self")],
)
def test_arguments_set_their_parameters(decorator: str, first: str, owner: str) -> None:
    """A call sets the parameter in whose place an argument stands, with and without `self`; the call is left alone."""
    module = Module(ast.parse(CODE.format(decorator=decorator, first=first, owner=owner)))
    call = module.calls_of("fetch")[0]
    around = {node: module.parents[node] for node in ast.walk(call) if node in module.parents}
    [loop] = find_recursions(module)
    assert "attempt += 1\n        continue" in ast.unparse(loop)
    assert {node: module.parents[node] for node in around} == around


def test_what_is_copied_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions within a function are copied with it, so they count."""
    code = """
        def fetch(url):
            def log():
                print(1, 2, 3, 4, 5, 6, 7, 8, 9)
            try:
                return get(url)
            except OSError:
                return fetch(url)
    """
    module = Module(ast.parse(textwrap.dedent(code)))
    assert len(find_recursions(module)) == 1
    monkeypatch.setattr(recursion, "_LARGEST", 30)
    assert find_recursions(module) == []
