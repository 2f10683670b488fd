"""Parse durations such as "1m30s", for the command line and for scenarios of simulations."""

_UNITS = {"us": 1e-6, "ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_PART = f"({_NUMBER})(us|ms|s|m|h|d)"


def parse_duration(text: str, *, plain: bool = False) -> float | None:
    """Return the seconds of a duration with units, such as "1m30s" or "500ms"; with `plain`, also of "90" or "0.5".

    Spaces around it and capitals are ignored. Return None for any other text, such as a sign, an exponent or "inf", and
    for a number beyond all floats.
    """
    import re  # here: the core does not load it at import

    text = text.strip().lower()
    if plain and re.fullmatch(_NUMBER, text):
        seconds = float(text)
    elif re.fullmatch(f"(?:{_PART})+", text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
    else:
        return None
    return seconds if seconds < float("inf") else None
