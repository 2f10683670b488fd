"""A library that is not there: the text names the extra."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "missing"),
    [("opentelemetry", "opentelemetry"), ("prometheus", "prometheus_client"), ("structlog", "structlog")],
)
def test_the_cure_is_named(module: str, missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the listener of a library that is not installed says how to install it."""
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"forbear.observe.{module}", raising=False)
    with pytest.raises(ImportError, match=rf'pip install "forbear\[{module}\]"'):
        importlib.import_module(f"forbear.observe.{module}")
