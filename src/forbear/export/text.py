"""Pieces of text that several targets share."""

LEAST = 0.001
"""The shortest duration that is no zero to gRPC and Envoy, in seconds."""

_MOST = 315_576_000_000


def duration(seconds: float) -> str:
    """Seconds as protobuf's JSON has them: "1.5s", within what gRPC and Envoy take: `LEAST` and ten thousand years."""
    return f"{min(max(seconds, LEAST), _MOST):.9f}".rstrip("0").rstrip(".") + "s"
