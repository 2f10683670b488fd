"""The gallery: published studies of retries, each with the published figures beside those of the simulator.

`STUDIES` has them by name, and `study(name)` returns one.
"""

from difflib import get_close_matches

from forbear_simulate.gallery.aws_jitter import AWS_JITTER
from forbear_simulate.gallery.brooker import BROOKER_BACKOFF, BROOKER_BUCKET
from forbear_simulate.gallery.google_sre import SRE_LAYERS, SRE_THROTTLE
from forbear_simulate.gallery.metastable import HOTOS_2021, OSDI_2022
from forbear_simulate.gallery.own_jitter import OWN_JITTER
from forbear_simulate.gallery.queues import NO_HYSTERESIS
from forbear_simulate.gallery.studies import Comparison, Study

__all__ = ["STUDIES", "Comparison", "Study", "study"]

STUDIES: dict[str, Study] = {
    each.name: each
    for each in (
        AWS_JITTER,
        BROOKER_BUCKET,
        BROOKER_BACKOFF,
        HOTOS_2021,
        OSDI_2022,
        SRE_THROTTLE,
        SRE_LAYERS,
        NO_HYSTERESIS,
        OWN_JITTER,
    )
}
"""All studies by name."""


def study(name: str) -> Study:
    """Return the study called `name`; raise ValueError, with the nearest name, if there is none.

    >>> study(next(iter(STUDIES))).title
    'AWS 2015: jitter halves the calls of 100 writers that contend for one record'
    """
    if name not in STUDIES:
        near = get_close_matches(name, STUDIES, 1)
        cure = f"did you mean {near[0]}?" if near else f"write one of {', '.join(STUDIES)}"
        raise ValueError(f"`name` must be the name of a study, got {name!r}; {cure}")
    return STUDIES[name]
