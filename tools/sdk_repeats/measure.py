"""Run all trials, and print what they counted as JSON: `python -m tools.sdk_repeats.measure`, where the clients are."""

import json
import logging
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.metadata import version
from typing import Any

from tools.sdk_repeats.trials import FAULTS, Library, faults_of, run

MODULES = ("aws", "google", "azure", "payments", "llm", "clusters", "stores")
MODES = ("default", "off", "forbear")
_AT_ONCE = 16


def measure(modules: tuple[str, ...]) -> dict[str, Any]:
    """Return what the trials of all libraries in these modules counted."""
    libraries: list[Library] = []
    for name in modules:
        libraries += import_module(f"tools.sdk_repeats.libraries.{name}").LIBRARIES
    for library in libraries:
        run(library, library.operations[0], "off", "lost")  # imports what it needs, which is not safe in threads
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        running = {
            (library.name, operation.name, mode, fault): pool.submit(run, library, operation, mode, fault)
            for library in libraries
            for operation in library.operations
            for mode in MODES
            if mode != "forbear" or library.forbear
            for fault in faults_of(library)
        }
        counted = {trial: future.result() for trial, future in running.items()}
    return {
        "python": platform.python_version(),
        "libraries": [_describe(library, counted) for library in libraries],
    }


def _describe(library: Library, counted: dict[tuple[str, str, str, str], dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": library.name,
        "versions": {name: version(name) for name in library.packages},
        "off": library.off,
        "forbear": library.forbear,
        "note": library.note,
        "operations": [
            {
                "name": operation.name,
                "second": operation.second,
                **{
                    mode: {
                        fault: counted[library.name, operation.name, mode, fault]
                        for fault in FAULTS
                        if (library.name, operation.name, mode, fault) in counted
                    }
                    for mode in MODES
                },
            }
            for operation in library.operations
        ],
    }


def main() -> None:
    """Print the figures of all libraries, or of those that the command line names."""
    logging.disable()
    chosen = tuple(sys.argv[1:]) or MODULES
    print(json.dumps(measure(chosen), indent=1))


if __name__ == "__main__":
    main()
