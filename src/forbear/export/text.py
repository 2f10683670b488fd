"""Pieces of text that several targets share."""


def duration(seconds: float) -> str:
    """Seconds as protobuf's JSON has them: "1.5s"; at least a nanosecond."""
    return f"{max(seconds, 1e-9):.9f}".rstrip("0").rstrip(".") + "s"
