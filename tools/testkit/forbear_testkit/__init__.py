"""The parts that tests of several packages share: servers, labs, cases and fixtures. It is never published."""

import os
from pathlib import Path

__all__ = ["ROOT"]

ROOT = Path(os.environ.get("FORBEAR_ROOT") or Path(__file__).parents[3])
"""The root of the repository; $FORBEAR_ROOT where the testkit is installed elsewhere."""
