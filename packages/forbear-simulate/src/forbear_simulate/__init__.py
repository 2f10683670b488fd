"""Simulate a fleet of clients against a service, in virtual time, with the waits and stops of real policies.

`simulate(scenario)` returns a `FleetOutcome`. `verdict`, `find`, `phase_map` and `sweep` simulate it many times. A
`Scenario` is made in Python of its parts, or read from a file by `read_file`, or from nested mappings by
`read_mapping`.
"""

from forbear.adapters import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from forbear_simulate.analysis.figures import Figures
    from forbear_simulate.analysis.outcome import FleetOutcome
    from forbear_simulate.analysis.phase import PhaseMap, phase_map
    from forbear_simulate.analysis.runs import SimulationInterrupted, simulate
    from forbear_simulate.analysis.search import FoundValues, find
    from forbear_simulate.analysis.sweep import SweptFigures, sweep
    from forbear_simulate.analysis.verdict import FleetVerdict, verdict
    from forbear_simulate.scenario.budgets import ClientBudget, Throttling
    from forbear_simulate.scenario.fields import ScenarioError
    from forbear_simulate.scenario.reading import read_file, read_mapping
    from forbear_simulate.scenario.scenario import Clients, Layer, RateChange, Scenario, Server, Window

__all__ = [
    "ClientBudget",
    "Clients",
    "Figures",
    "FleetOutcome",
    "FleetVerdict",
    "FoundValues",
    "Layer",
    "PhaseMap",
    "RateChange",
    "Scenario",
    "ScenarioError",
    "Server",
    "SimulationInterrupted",
    "SweptFigures",
    "Throttling",
    "Window",
    "find",
    "phase_map",
    "read_file",
    "read_mapping",
    "simulate",
    "sweep",
    "verdict",
]

if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ClientBudget": "scenario.budgets",
            "Clients": "scenario.scenario",
            "Figures": "analysis.figures",
            "FleetOutcome": "analysis.outcome",
            "FleetVerdict": "analysis.verdict",
            "FoundValues": "analysis.search",
            "Layer": "scenario.scenario",
            "PhaseMap": "analysis.phase",
            "RateChange": "scenario.scenario",
            "Scenario": "scenario.scenario",
            "ScenarioError": "scenario.fields",
            "Server": "scenario.scenario",
            "SimulationInterrupted": "analysis.runs",
            "SweptFigures": "analysis.sweep",
            "Throttling": "scenario.budgets",
            "Window": "scenario.scenario",
            "find": "analysis.search",
            "phase_map": "analysis.phase",
            "read_file": "scenario.reading",
            "read_mapping": "scenario.reading",
            "simulate": "analysis.runs",
            "sweep": "analysis.sweep",
            "verdict": "analysis.verdict",
        },
    )
