"""What the tests of several packages share: servers, labs, cases and fixtures. It is never published."""

from pathlib import Path

__all__ = ["ROOT"]

ROOT = Path(__file__).parents[3]
"""The root of the repository."""
