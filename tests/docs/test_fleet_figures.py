"""The shipped policies in a fleet: the stored figures are those of today, and goals are missed only where known."""

from pathlib import Path

import pytest

from docs.generate.fleet import (
    BEGIN,
    DEFAULTS,
    GALLERY,
    PICTURES,
    draw_pictures,
    filled,
    measured_defaults,
    measured_gallery,
    rows_of,
    stored_comparisons,
    stored_figures,
)
from forbear_simulate.analysis.defaults import BEST_DRAIN, GOALS, PolicyFigures, list_policies, waits_alone
from forbear_simulate.gallery import STUDIES

MISSES = {
    "cloud_storage": ("drain",),
    "iam": ("drain",),
    "memorystore": ("drain",),
    "resource_manager": ("drain",),
}
"""The goals that policies miss, but for those called documented, which follow their pages to the letter."""


def test_every_shipped_policy_has_figures() -> None:
    """No policy is missing in the stored figures, and none has left them behind."""
    assert list(stored_figures()) == list(list_policies())


@pytest.mark.parametrize("name", list_policies())
def test_goals(name: str) -> None:
    """A policy misses the goals that are known, and no other; with the budget, all are below 1.1 times the load."""
    figures = stored_figures()[name]
    if "documented" in name:
        assert figures.misses == ("peak", "drain")
    else:
        assert figures.misses == MISSES.get(name, ())
    assert max(figures.brown_out_budget, figures.herd_budget) <= GOALS["amplification"]
    assert figures.brown_out > 2


def test_the_stored_figures_are_those_of_today() -> None:
    """A sample, simulated again, gives the same figures; `make fleet` cures a failure, and `make soak` tries all.

    The waits of `ci` are the best for a fleet: full jitter with a maximum of 32 s.
    """
    peak, drain = waits_alone(list_policies()["ci"].backoff)
    stored = stored_figures()["ci"]
    assert peak == pytest.approx(stored.peak, rel=1e-3)
    assert drain == pytest.approx(stored.drain, rel=1e-3)
    assert drain == pytest.approx(BEST_DRAIN, rel=0.02)


def test_the_stored_gallery_is_that_of_today() -> None:
    """The studies that take no time, simulated again, give the same rows."""
    stored = GALLERY.read_text(encoding="utf-8")
    for name in ("sre-layers", "hotos-2021"):
        for row in rows_of(STUDIES[name]):
            assert all(cell in stored for cell in row), row


def test_the_stored_gallery_holds() -> None:
    """Every study has its stored comparisons, and all hold."""
    comparisons = stored_comparisons()
    assert list(comparisons) == list(STUDIES)
    assert all(each.holds for study in comparisons.values() for each in study)


@pytest.mark.soak
def test_all_stored_figures_are_those_of_today() -> None:
    """All policies and studies, simulated again, give the stored figures."""
    assert measured_defaults() == DEFAULTS.read_text(encoding="utf-8")
    assert measured_gallery() == GALLERY.read_text(encoding="utf-8")


def test_misses() -> None:
    """A figure misses its goal if it is above it as printed."""
    good = PolicyFigures(1.1, 96.0, 1, 5, 1.1, 10, 0, 1.1)
    assert good.misses == ()
    bad = PolicyFigures(1.11, 97.0, 1, 5, 1.0, 10, 0, 1.11)
    assert bad.misses == ("peak", "drain", "amplification")


def test_a_page_without_a_place_for_the_table() -> None:
    """The error names the lines that are missing."""
    with pytest.raises(ValueError, match=BEGIN):
        filled("# Fleets\n")


def test_the_pictures_are_small() -> None:
    """The page has its pictures, and they load fast."""
    for name in ("jitter.png", "budget.png"):
        assert 10_000 < (PICTURES / name).stat().st_size < 60_000


@pytest.mark.soak
def test_the_pictures_can_be_drawn_again(tmp_path: Path) -> None:
    """`make fleet` draws both pictures, one of them by the command on the page."""
    draw_pictures(tmp_path)
    for name in ("jitter.png", "budget.png"):
        assert (tmp_path / name).read_bytes()[:4] == b"\x89PNG"
