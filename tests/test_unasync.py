"""The sync modules and functions are those that the async ones give."""

import pytest

from tools.unasync import PAIRS, TWINS, Pair, Twin


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.path)
def test_a_sync_module_is_up_to_date(pair: Pair) -> None:
    """`make unasync` cures a failure."""
    assert pair.target.read_text(encoding="utf-8") == pair.translate()


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: f"{twin.path}:{twin.sync}")
def test_a_sync_function_is_up_to_date(twin: Twin) -> None:
    """`make unasync` cures a failure."""
    assert twin.target.read_text(encoding="utf-8") == twin.translate()


def test_a_function_that_is_gone_is_an_error() -> None:
    """Otherwise its sync form would stay as it is."""
    with pytest.raises(ValueError, match="has no function gone"):
        TWINS[0]._replace(source="gone").translate()


def test_a_passage_that_is_gone_is_an_error() -> None:
    """Otherwise a change of the async module would go into the sync one untranslated."""
    pair = PAIRS[0]._replace(passages={"no such passage": ""})
    with pytest.raises(ValueError, match="lacks this passage"):
        pair.translate()
