"""Each public name of `forbear` has an example in its docstring, which runs; `help(forbear)` begins with a screen."""

import doctest
import inspect
import pydoc

import pytest

import forbear
from docs.generate.__main__ import API, page
from forbear.testing import virtual_time

LIKE_ANOTHER = {"aupdate": "update"}
"""The names whose docstring refers to that of another."""


@pytest.mark.parametrize("name", forbear.__all__)
def test_an_example(name: str) -> None:
    """The example of a public name runs, and prints what stands below it."""
    text = inspect.getdoc(getattr(forbear, name)) or ""
    if name in LIKE_ANOTHER:
        assert f"`{LIKE_ANOTHER[name]}`" in text
        return
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    test = doctest.DocTestParser().get_doctest(text, {"forbear": forbear}, name, None, None)
    assert test.examples
    problems = list[str]()
    with virtual_time(seed=1):
        doctest.DocTestRunner(optionflags=flags).run(test, out=problems.append)
    assert problems == []


def test_examples_are_code_on_the_pages() -> None:
    """On the page of the API an example is a block of code."""
    text = page(f"{API}forbear")
    named = [name for name in forbear.__all__ if name not in LIKE_ANOTHER]
    made = [name for name in named if inspect.isroutine(value := getattr(forbear, name)) or inspect.isclass(value)]
    assert text.count("```pycon\n>>> ") == len(made)  # the entry of another value has the text of its variable
    assert "\n\n>>> " not in text


def test_help_begins_with_a_screen() -> None:
    """The first screen of `help(forbear)` says how to begin, and names what the package has."""
    text = pydoc.plain(pydoc.render_doc(forbear))
    about = text.partition("DESCRIPTION\n")[2].partition("\n\nPACKAGE CONTENTS")[0]
    assert text.index(about) < 200
    assert len(about.splitlines()) <= 20
    assert max(map(len, about.splitlines())) <= 125
    for name in ("retry", "install", "explain", "report", "safe_to_repeat", "update", "disabled", "stop_on"):
        assert f"forbear.{name}" in about
