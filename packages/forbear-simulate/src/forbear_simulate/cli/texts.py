"""The texts of figures and times in the output of `forbear simulate`."""

from math import isinf

_DECIMALS = {"calls": 0, "attempts": 0, "requests": 0}


def time_text(seconds: float) -> str:
    """Return a time such as "1m30s", "45s" or "0.5s"; whole seconds from a minute on."""
    if seconds < 60:
        return f"{seconds:.3g}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def figure_text(value: float | None, unit: str, error: float | None = None) -> str:
    """Return a figure with its unit, and its standard error if there is one; "-" for None, "never" for infinity."""
    if value is None:
        return "-"
    if isinf(value):
        return "never"
    scale, sign = {"share": (100, " %"), "seconds": (1, " s")}.get(unit, (1, "/s" if unit.endswith("/s") else ""))
    if unit == "seconds" and 0 < value < 1:
        scale, sign = 1000, " ms"
    if unit in _DECIMALS:
        text, spread = f"{value:,.0f}".replace(",", " "), "" if error is None else f"{error:,.0f}".replace(",", " ")
    else:
        text, spread = _short(value * scale), "" if error is None else f"{error * scale:.2g}"
    return f"{text}{sign}" if error is None else f"{text}{sign} ± {spread}"


def _short(value: float) -> str:
    """Return a number with three digits that count, and all of them left of the point."""
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if value < 100 else f"{value:.1f}"
