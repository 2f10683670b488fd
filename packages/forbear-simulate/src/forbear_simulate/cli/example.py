"""The scenario of `forbear simulate` without a file, and of the demo."""

from typing import Any

EXAMPLE: dict[str, Any] = {
    "duration": "2m",
    "step": "500ms",
    "clients": {"rate": "80/s", "count": 500, "attempt_timeout": "1s"},
    "service": {"workers": 10, "time": "100ms"},
    "windows": [{"kind": "refuse", "start": "30s", "length": "30s"}],
}
"""80 calls per second to a service for 100, which refuses everything for half a minute."""
