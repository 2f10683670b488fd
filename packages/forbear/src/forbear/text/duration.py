"""Durations as text: show seconds as "31.2 s", read "1m30s" (command line, scenarios of simulations)."""

_UNITS = {"us": 1e-6, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_PART = f"({_NUMBER})(us|ms|s|m|h|d)"


def parse_duration(text: str, *, plain: bool = False) -> float | None:
    """Return the seconds of a duration with units, such as "1m30s" or "500ms"; with `plain`, also of "90" or "0.5".

    Spaces around it and capitals are ignored. Return None for any other text, such as a sign, an exponent or "inf", and
    for a number beyond all floats.

    >>> parse_duration("1m30s"), parse_duration("soon")
    (90.0, None)
    """
    import re  # here: `import forbear` does not load it

    text = text.strip().lower()
    if plain and re.fullmatch(_NUMBER, text):
        seconds = float(text)
    elif re.fullmatch(f"(?:{_PART})+", text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
    else:
        return None
    return seconds if seconds < float("inf") else None


def show(seconds: float) -> str:
    """Format seconds for people, with three digits, or whole from 100 on: "31.2 s", "0.05 s", "600 s", "1e+15 s".

    Below a tenth of a millisecond it is whole microseconds, if there are any: "0.000066 s", "1e-07 s".
    """
    if 1e-6 <= seconds < 1e-4:
        return f"{seconds:.6f} s"
    return f"{seconds:.0f} s" if 100 <= seconds < 1e15 else f"{seconds:.3g} s"
