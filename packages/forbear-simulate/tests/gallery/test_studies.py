"""The gallery: every study holds within its stated error, names its source, and can fail."""

import re
from functools import cache
from itertools import pairwise
from math import comb
from typing import TYPE_CHECKING

import pytest

from forbear.core.backoff import Exponential
from forbear_simulate.analysis.recovery import drain_time
from forbear_simulate.engines.exact import simulate_exact
from forbear_simulate.gallery import STUDIES, Comparison, study
from forbear_simulate.gallery.aws_jitter import BACKOFFS, compare
from forbear_simulate.gallery.brooker import failing
from forbear_simulate.gallery.google_sre import attempts_at_the_bottom, simulate_attempts
from forbear_simulate.gallery.metastable import goodput_after, outage_at
from forbear_simulate.gallery.own_jitter import herd
from forbear_simulate.gallery.queues import find_fixed_point, share_blocked
from forbear_simulate.gallery.studies import show_figure, text_of_error, text_of_published

if TYPE_CHECKING:
    from forbear.core.backoff import Jitter

SLOW = frozenset({"aws-jitter-2015", "own-jitter"})
"""Studies of many runs: a test of their own takes a part of them, and `make soak` the whole."""


@cache
def comparisons(name: str) -> tuple[Comparison, ...]:
    """The comparisons of a study; each study is run once for all tests."""
    return study(name).run()


@pytest.mark.parametrize(
    "name", [name if name not in SLOW else pytest.param(name, marks=pytest.mark.soak) for name in STUDIES]
)
def test_it_holds(name: str) -> None:
    """All figures of a study lie within the stated error of the published ones, and none is stated loosely."""
    for each in comparisons(name):
        assert each.holds, each
        assert each.error <= (1 if each.published == 0 else 0.15), each


@pytest.mark.parametrize("backoff", BACKOFFS)
def test_the_jitter_study_of_aws(backoff: str) -> None:
    """A part of the study: 10 writers with each backoff, within 15 % of the time and 5 % of the calls."""
    for each in compare(10, backoff, 60, 0.15, 0.05):
        assert each.holds, each


def test_fifty_writers_of_aws() -> None:
    """Full jitter for 50 writers: within 15 % of the time and 3 % of the calls, which are about half as without."""
    for each in compare(50, "full jitter", 12, 0.15, 0.03):
        assert each.holds, each


@pytest.mark.parametrize("name", STUDIES)
def test_it_says_where_it_is_from(name: str) -> None:
    """A study has a source, says how its figures are known and how ours are made, in whole sentences."""
    entry = study(name)
    assert entry.name == name
    assert re.fullmatch(r"[a-z0-9-]+", name)
    assert entry.source
    for text in (entry.shows, entry.published, entry.model):
        assert text.endswith(".")
        assert len(text) > 60


@pytest.mark.parametrize(
    ("published", "ours", "error", "relation", "holds"),
    [
        (100, 110, 0.1, "about", True),
        (100, 89, 0.1, "about", False),
        (100, 50, 0.1, "at most", True),
        (100, 111, 0.1, "at most", False),
        (100, 500, 0.1, "at least", True),
        (100, 89, 0.1, "at least", False),
        (0, 0.5, 1, "about", True),
        (0, 1.5, 1, "about", False),
    ],
)
def test_a_comparison_holds_within_its_error(
    published: float, ours: float, error: float, relation: str, holds: bool
) -> None:
    """The error counts on the side that the relation names, as a share of the published figure; of 0, as it is."""
    each = Comparison("load", published, ours, error, relation=relation)  # type: ignore[arg-type]
    assert each.holds is holds


def test_the_texts_of_a_figure() -> None:
    """A limit says what it is; the error is in percent, or in the unit if the published figure is 0."""
    limit, nothing = Comparison("load", 1.1, 2000, 0.125, "/s", "at most"), Comparison("goodput", 0, 5, 1, "QPS")
    assert (text_of_published(limit), show_figure(limit.ours, limit.unit), text_of_error(limit)) == (
        "at most 1.1 /s",
        "2000 /s",
        "12.5%",
    )
    assert (text_of_published(nothing), text_of_error(nothing)) == ("0 QPS", "1 QPS")


def test_an_unknown_study() -> None:
    """The error names the nearest study, or all of them."""
    with pytest.raises(ValueError, match=r"`name` must be .* got 'hotos-2022'; did you mean hotos-2021\?"):
        study("hotos-2022")
    with pytest.raises(ValueError, match=r"write one of .*own-jitter"):
        study("?")


def test_the_bucket_in_closed_form() -> None:
    """With a bucket and failures of half of all attempts, retries a call are 0.1 of the successes: 1.0526 attempts."""
    load, successes = failing(0.5, bucket=True)
    assert load == pytest.approx(1 / 0.95, rel=0.01)
    assert successes == pytest.approx(load / 2, rel=0.05)


@pytest.mark.parametrize(("layers", "attempts"), [(1, 4), (2, 3), (3, 2)])
def test_layers_multiply(layers: int, attempts: int) -> None:
    """Without the guard, attempts multiply over the layers; with it, one layer retries: really and simulated."""
    for made in (attempts_at_the_bottom, simulate_attempts):
        assert made(layers, attempts, guarded=False) == attempts**layers
        assert made(layers, attempts, guarded=True) == attempts


def test_the_osdi_relations_are_not_of_one_load_only() -> None:
    """The relations hold at both ends of the range of loads that the study states, and no longer beyond it."""

    def relations(load: float) -> list[int]:
        return [round(goodput_after(lost, length, load)) for lost, length in ((0.78, 10), (0.8, 10), (0.8, 9))]

    assert relations(0.37) == relations(0.385) == [1, 0, 1]
    assert relations(0.35) == [1, 1, 1]
    assert relations(0.41) == [0, 0, 0]


def test_the_outage_of_hotos_recovers_slowly_below_the_limit() -> None:
    """Below half of the capacity the backlog drains at what is left: 2790 requests at 20 a second, about 140 s."""
    series = outage_at(140)
    assert series.mean("successes", 60, 140) == 0
    assert series.mean("successes", 190) / series.step == pytest.approx(140, rel=0.01)


def test_the_fixed_point_is_the_only_one() -> None:
    """The load that refusals cause crosses the load itself once, so no trigger can move it to another point."""

    def excess(load: float) -> float:
        refused = share_blocked(load / 100, 10)
        return 80 * (1 - refused**4) / (1 - refused) - load

    signs = [excess(float(load)) > 0 for load in range(80, 330)]
    assert sum(a != b for a, b in pairwise(signs)) == 1
    assert excess(find_fixed_point()) == pytest.approx(0, abs=1e-6)


def test_the_peak_in_closed_form() -> None:
    """Five uniform seconds in a period of 32 s: the fullest second has 66/120 of all, 17.6 times the mean."""
    share = sum((-1) ** k * comb(5, k) * ((3 - k) ** 5 - max(2 - k, 0) ** 5) for k in range(3)) / 120
    assert share * 32 == pytest.approx(17.6)


@pytest.mark.soak
@pytest.mark.parametrize(("jitter", "published"), [("documented", 932), ("equal", 68), ("full", 64)])
def test_the_exact_engine_drains_in_the_same_time(jitter: "Jitter", published: float) -> None:
    """With chance, and each call on its own, the times to drain are within the same 4 %."""
    scenario = herd(Exponential(1, 2, 32, jitter), 60, 1080 if jitter == "documented" else 180)
    assert drain_time(scenario, simulate_exact(scenario, seed=1)) == pytest.approx(published, rel=0.04)
