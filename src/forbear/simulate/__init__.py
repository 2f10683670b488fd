"""Simulate a fleet of clients against a service, in virtual time, with the waits and stops of real policies.

`simulate(scenario)` returns a `FleetOutcome`. A `Scenario` is made in Python of its parts, or read from a file by
`read_file`, or from nested mappings by `read_mapping`.
"""

from forbear.simulate.fields import ScenarioError
from forbear.simulate.figures import Figures
from forbear.simulate.outcome import FleetOutcome
from forbear.simulate.reading import read_file, read_mapping
from forbear.simulate.runs import SimulationInterrupted, simulate
from forbear.simulate.scenario import ClientBudget, Clients, Layer, RateChange, Scenario, Server, Throttling, Window

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
