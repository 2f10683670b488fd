"""Sizes, times and counts of transfers in words. It computes nothing but them, and knows no transfer."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def of_bytes(count: float) -> str:
    """A size: "0 B", "4.0 KiB", "1.2 GiB"."""
    power = 0
    while count >= (999.95 if power else 1024) and power < len(_UNITS) - 1:
        count /= 1024
        power += 1
    return f"{count:.1f} {_UNITS[power]}" if power else f"{count:.0f} B"


def of_clock(seconds: float) -> str:
    """A time to wait: "0:07", "1:02:03", "3 days"."""
    whole = round(seconds)
    if whole >= 2 * 86400:
        return f"{whole // 86400} days"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def of_span(seconds: float) -> str:
    """A time that has passed: "0.2 s", "42 s", "1:02:03"."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else of_clock(seconds)


def of_count(count: int, word: str, plural: str | None = None) -> str:
    """A number of things: "1 file", "2 retries"."""
    return f"{count} {word if count == 1 else plural or f'{word}s'}"
