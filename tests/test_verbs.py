"""Functions begin with a verb, or are called by the noun of their result."""

import pytest

from tools.verbs import is_misnamed, listed, misnamed


@pytest.mark.parametrize("name", ["_within", "why_not", "chosen", "_listed", "found", "of_request", "no_result"])
def test_small_words_and_participles_are_no_verbs(name: str) -> None:
    """A name says what a function does, not how its result came about."""
    assert is_misnamed(name)


@pytest.mark.parametrize("name", ["_find", "need", "verdict_of", "with_timeout", "is_ready", "failed", "on_end"])
def test_verbs_nouns_and_event_sinks_are_well_named(name: str) -> None:
    """The rule is about functions that are called for what they do."""
    assert not is_misnamed(name)


def test_properties_may_have_any_name() -> None:
    """A property is read like a field, so it has a noun or a participle."""
    source = "class A:\n    @property\n    def listed(self): ...\n    def chosen(self): ...\n"
    assert list(misnamed(source)) == ["chosen"]


def test_the_list_only_shrinks() -> None:
    """Lower this number with the list: a new name gets a verb, not a line."""
    assert len(listed()) <= 60
