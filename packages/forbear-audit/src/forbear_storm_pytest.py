"""The options of the storm for pytest, which loads them by an entry point; only a storm imports more."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the storm, which do nothing unless they are given."""
    group = parser.getgroup("forbear", "forbear: find retries that hurt")
    group.addoption(
        "--forbear-storm",
        action="store_true",
        help="run each test again with one fault for each call that it sends, and report the retries that hurt",
    )
    group.addoption(
        "--forbear-storm-sample", type=int, metavar="N", help="for each test take N of these runs at random"
    )
    group.addoption("--forbear-storm-seed", type=int, metavar="SEED", help="choose the sample by SEED")
    group.addoption(
        "--forbear-storm-plan",
        metavar="FILE",
        help="try only the calls and faults in FILE, which `forbear audit --storm-plan FILE` writes",
    )
    group.addoption("--forbear-storm-json", metavar="FILE", help="write what the storm found to FILE as JSON")
    group.addoption("--forbear-storm-sarif", metavar="FILE", help="write it to FILE as SARIF 2.1.0, for code hosts")
    group.addoption(
        "--forbear-fault",
        metavar="CALL#NUMBER:FAULT",
        help="run the tests with one fault: 'POST /orders#1:lost', or 'POST /orders#1+:503' for a lasting one",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers, and load the storm if one of its options asks for it."""
    config.addinivalue_line(
        "markers", "forbear_storm(faults, attempts, minutes, sample, effects): how --forbear-storm runs this test"
    )
    config.addinivalue_line("markers", "forbear_ignore: --forbear-storm leaves this test alone")
    for option in ("json", "plan", "sample", "sarif", "seed"):
        runs = config.getoption("forbear_storm") or (option in ("json", "sarif") and config.getoption("forbear_fault"))
        if config.getoption(f"forbear_storm_{option}") is not None and not runs:
            raise pytest.UsageError(f"`--forbear-storm-{option}` does nothing without `--forbear-storm`: add it")
    if config.getoption("forbear_storm") or config.getoption("forbear_fault") is not None:
        from forbear_audit.storm.plugin import StormPlugin

        config.pluginmanager.register(StormPlugin(config), "forbear_storm")
