"""The description of what is sent: whether only the user's word allows a repeat, and the words that would."""

from forbear.exchange.redis.work import pipeline, single, transaction

INCR, GET, LPUSH = ("INCR", "k"), ("GET", "k"), ("LPUSH", "l", "x")
SAFE = frozenset({"INCR"})
CURE = '; if that does no harm, vouch for it with safe="LPUSH"'


def test_single_commands() -> None:
    """A vouch shows where it made the difference, and the cure where it could."""
    assert [(work.repeatable, work.vouched) for work in (single(INCR, SAFE), single(INCR), single(GET, SAFE))] == [
        (True, True),
        (False, False),
        (True, False),
    ]
    assert single(LPUSH).cure == CURE
    assert single(INCR, SAFE).cure == single(("SET", "k", "v", "NX")).cure == ""


def test_pipelines() -> None:
    """A pipeline is vouched for only if it may be repeated; else the cure is that of its first unsafe command."""
    both = pipeline([INCR, GET], SAFE)
    assert (both.repeatable, both.vouched, both.cure) == (True, True, "")
    other = pipeline([INCR, LPUSH], SAFE)
    assert (other.repeatable, other.vouched, other.cure) == (False, False, CURE)
    assert other.unsafe == "the pipeline with LPUSH may have been executed and must not be executed twice"
    assert not pipeline([GET], SAFE).vouched


def test_transactions() -> None:
    """The same for a transaction; under WATCH no word of the user helps, so there is no cure."""
    both = transaction([INCR, GET], SAFE, watched=False)
    assert (both.repeatable, both.vouched, both.cure) == (True, True, "")
    assert transaction([INCR, LPUSH], SAFE, watched=False).cure == CURE
    watched = transaction([INCR, LPUSH], SAFE, watched=True)
    assert (watched.repeatable, watched.vouched, watched.cure) == (False, False, "")
