"""`promised`: which commands its block covers."""

from forbear.exchange.redis.descriptions import describe_command, promised


def seen(command: str = "EVALSHA abc 0") -> bool:
    """Return whether a command may be repeated where this is called."""
    return describe_command(command.split()).repeatable


def test_the_block() -> None:
    """It covers its own block, and nested blocks add up."""
    assert not seen()
    with promised("idempotent"):
        assert seen()
        assert not seen("EXPIRE k 60")
        with promised("drift"):
            assert seen()
            assert seen("EXPIRE k 60")
        assert not seen("EXPIRE k 60")
    assert not seen()
