"""The description of what is sent: whether only the user's word allows a repeat, and the words that would."""

from forbear.exchange.redis.descriptions import describe_command, describe_together

INCR, GET, LPUSH = ("INCR", "k"), ("GET", "k"), ("LPUSH", "l", "x")
SAFE = frozenset({"INCR"})
CURE = '; if that does no harm, vouch for it with safe="LPUSH"'


def test_single_commands() -> None:
    """A vouch shows where it made the difference, and the cure where it could."""
    described = describe_command(INCR, SAFE), describe_command(INCR), describe_command(GET, SAFE)
    assert [(sent.repeatable, sent.vouched) for sent in described] == [(True, True), (False, False), (True, False)]
    assert describe_command(LPUSH).cure == CURE
    assert describe_command(INCR, SAFE).cure == describe_command(("SET", "k", "v", "NX")).cure == ""


def test_a_pipeline_is_vouched_for_only_as_a_whole() -> None:
    """A pipeline is vouched for only if it may be repeated; else the cure is that of its first unsafe command."""
    both = describe_together([INCR, GET], SAFE)
    assert (both.repeatable, both.vouched, both.cure) == (True, True, "")
    other = describe_together([INCR, LPUSH], SAFE)
    assert (other.repeatable, other.vouched, other.cure) == (False, False, CURE)
    assert other.unsafe == "the pipeline with LPUSH may have been executed and must not be executed twice"
    assert not describe_together([GET], SAFE).vouched


def test_a_transaction_is_vouched_for_only_as_a_whole() -> None:
    """The same for a transaction; under WATCH no word of the user helps, so there is no cure."""
    both = describe_together([INCR, GET], SAFE, transaction=True)
    assert (both.repeatable, both.vouched, both.cure) == (True, True, "")
    assert describe_together([INCR, LPUSH], SAFE, transaction=True).cure == CURE
    watched = describe_together([INCR, LPUSH], SAFE, transaction=True, watched=True)
    assert (watched.repeatable, watched.vouched, watched.cure) == (False, False, "")
