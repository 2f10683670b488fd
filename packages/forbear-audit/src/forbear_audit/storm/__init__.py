"""A storm: run a test or a function again with one fault for each of its calls, and report the retries that hurt.

With pytest: `pytest --forbear-storm`. Without: `storm(function)`.
"""

from forbear.adapters import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear_audit.storm.counting import effects
    from forbear_audit.storm.faults import FAULTS
    from forbear_audit.storm.function import StormReport, storm
    from forbear_audit.storm.judge import StormFinding

__all__ = ["FAULTS", "StormFinding", "StormReport", "effects", "storm"]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "FAULTS": "faults",
            "StormFinding": "judge",
            "StormReport": "function",
            "effects": "counting",
            "storm": "function",
        },
    )
