"""Unknown keywords are refused, with the one that forbear has instead."""

import re

import pytest

from forbear.core.check import refuse_unknown, suggest

KNOWN = ("attempts", "timeout", "backoff")


@pytest.mark.parametrize(
    ("unknown", "text"),
    [
        (["wait"], "`retry` takes no `wait`: write `backoff`"),
        (["max_retries"], "`retry` takes no `max_retries`: write `attempts`, which counts the first call, too: add 1"),
        (["reraise"], "`retry` takes no `reraise`: leave it out, because the last error is always raised"),
        (["atempts", "wait"], "`retry` takes no `atempts`: did you mean `attempts`?"),
        (["maximum"], "`retry` takes no `maximum`: write backoff=forbear.Exponential(maximum=...)"),
        (["max_delay"], "write backoff=forbear.Exponential(maximum=...), or `timeout` for the whole run"),
        (["times"], "`retry` takes no `times`: write `attempts`"),
        (["base"], "`retry` takes no `base`: write backoff=forbear.Exponential(multiplier=...)"),
        (["jitter"], "`retry` takes no `jitter`: write backoff=forbear.Exponential(jitter=...)"),
        (["exceptions"], "`retry` takes no `exceptions`: it takes attempts, timeout, backoff"),
    ],
)
def test_an_unknown_keyword_names_the_cure(unknown: list[str], text: str) -> None:
    """The text names the first unknown keyword, and what to write."""
    with pytest.raises(TypeError) as caught:
        refuse_unknown("retry", unknown, KNOWN)
    assert str(caught.value).endswith(text)


def test_statuses_and_loggers_need_no_option() -> None:
    """Statuses are read from errors, where those are listed; the log is there by itself."""
    for name, cure in (("status_codes", "response.raise_for_status()"), ("logger", 'the logger "forbear" gets')):
        with pytest.raises(TypeError, match=re.escape(cure)):
            refuse_unknown("retry", [name], ("on", "on_event"))


def test_the_words_of_a_backoff_need_one() -> None:
    """A function that takes no backoff lists its own words."""
    with pytest.raises(TypeError, match="`update` takes no `jitter`: it takes read, write"):
        refuse_unknown("update", ["jitter"], ("read", "write"))


def test_known_keywords_pass() -> None:
    """Nothing is raised without an unknown keyword."""
    refuse_unknown("retry", [], KNOWN)


def test_the_nearest_name_is_suggested() -> None:
    """Words for the end of a text; nothing where no name is near."""
    assert suggest("PutObjekt", iter(["GetObject", "PutObject"])) == '; did you mean "PutObject"?'
    assert suggest("zzz", ["GetObject"]) == ""
