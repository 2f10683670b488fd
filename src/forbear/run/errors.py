"""The one exception that forbear itself raises during a run; everything else that comes out is the caller's own."""


class AttemptTimeout(TimeoutError):
    """An attempt outlasted `attempt_timeout`, or what was left of `timeout`; whether it took effect is unknown."""
