"""The parts of policies, for annotations and own backoffs: presets, protocols, and the default of `on_give_up`."""

from forbear.core.presets import PRESETS, Preset
from forbear.core.protocols import Backoff, On
from forbear.run.iterate import AsyncAttempts, Attempts
from forbear.run.judges import RAISE

__all__ = ["PRESETS", "RAISE", "AsyncAttempts", "Attempts", "Backoff", "On", "Preset"]
