"""Simulate a fleet of clients against a service, in virtual time, with the waits and stops of real policies.

`simulate(scenario)` returns a `FleetOutcome`. A `Scenario` is made in Python of its parts, or read from a file by
`read_file`, or from nested mappings by `read_mapping`.
"""

from forbear.adapters import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear_simulate.fields import ScenarioError
    from forbear_simulate.figures import Figures
    from forbear_simulate.outcome import FleetOutcome
    from forbear_simulate.reading import read_file, read_mapping
    from forbear_simulate.runs import SimulationInterrupted, simulate
    from forbear_simulate.scenario import ClientBudget, Clients, Layer, RateChange, Scenario, Server, Throttling, Window

__all__ = [
    "ClientBudget",
    "Clients",
    "Figures",
    "FleetOutcome",
    "Layer",
    "RateChange",
    "Scenario",
    "ScenarioError",
    "Server",
    "SimulationInterrupted",
    "Throttling",
    "Window",
    "read_file",
    "read_mapping",
    "simulate",
]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ClientBudget": "scenario",
            "Clients": "scenario",
            "Figures": "figures",
            "FleetOutcome": "outcome",
            "Layer": "scenario",
            "RateChange": "scenario",
            "Scenario": "scenario",
            "ScenarioError": "fields",
            "Server": "scenario",
            "SimulationInterrupted": "runs",
            "Throttling": "scenario",
            "Window": "scenario",
            "read_file": "reading",
            "read_mapping": "reading",
            "simulate": "runs",
        },
    )
