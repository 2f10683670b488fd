"""The options of a storm in pytest: those of the markers of a test, and the files of the command line."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from forbear.adapters import check_at_least
from forbear.cli.kit.links import leads_out
from forbear_audit.storm.counting import Effects
from forbear_audit.storm.faults import FAULTS
from forbear_audit.storm.function import check_faults
from forbear_audit.storm.observe import StormLimits
from forbear_audit.storm.places import StormPlan

MARKER = "forbear_storm"
_KEYWORDS = ("attempts", "effects", "faults", "minutes", "sample")


@dataclass(frozen=True, slots=True)
class StormOptions:
    """The options of a storm for one test: `faults`, `limits`, a `sample` of so many runs (None: all), `effects`."""

    faults: frozenset[str] = frozenset(FAULTS)
    limits: StormLimits = field(default_factory=StormLimits)
    sample: int | None = None
    effects: tuple[Effects, ...] = ()

    @classmethod
    def of(cls, item: pytest.Item, sample: int | None) -> "StormOptions":
        """Return the options that the markers of a test set, the nearest first; `sample` is that of the command line.

        ValueError or TypeError, with the name of the marker, for an unknown keyword or a bad value.
        """
        options: dict[str, Any] = {}
        try:
            for marker in item.iter_markers(MARKER):
                unknown = [*marker.args, *sorted(marker.kwargs.keys() - set(_KEYWORDS))]
                if unknown:
                    raise ValueError(f"it takes the keywords {', '.join(_KEYWORDS)}; got {unknown[0]!r}")
                options = dict(marker.kwargs) | options
            faults = check_faults(options.get("faults", FAULTS))
            limits = StormLimits(options.get("attempts", 10), options.get("minutes", 10))
            size = options.get("sample", sample)
            if size is not None:
                check_at_least("sample", size, 1, what="a number of runs")
            return cls(faults, limits, size, _sources(item, options.get("effects")))
        except (TypeError, ValueError) as error:
            raise type(error)(f"@pytest.mark.{MARKER}: {error}") from None


def _sources(item: pytest.Item, effects: Any) -> tuple[Effects, ...]:
    """Return the source of effects, if any: a function, or the fixture of that name, which is or returns one."""
    if effects is None:
        return ()
    if callable(effects):
        return (cast("Effects", effects),)
    if not isinstance(effects, str):
        raise TypeError(f"`effects` must be a function or the name of a fixture; got {effects!r}")

    def from_fixture() -> Any:
        values: dict[str, Any] = getattr(item, "funcargs", None) or {}
        if effects not in values:
            raise ValueError(f"`effects` must be a fixture that the test uses; got {effects!r}")
        value: Any = values[effects]
        return value() if callable(value) else value

    from_fixture.__name__ = effects
    return (from_fixture,)


def writable(config: pytest.Config, option: str) -> Path | None:
    """Return the file of an option, None without it; UsageError if its folder does not exist, and for a link.

    A link in the folder of the tests that leads out of it is refused: whoever wrote them may have made it.
    """
    name: str | None = config.getoption(option)
    if name is None:
        return None
    file = config.invocation_params.dir / name
    if not file.parent.is_dir() or file.is_dir():
        raise pytest.UsageError(f"`{option}` must be a file in a folder that exists, got {name}")
    led = leads_out(file, (config.invocation_params.dir, config.rootpath))
    if led is not None:
        rule = f"`{option}` must not be written through a link in the code of others"
        raise pytest.UsageError(f"{rule}: {led[0]} leads to {led[1]}; name the file itself that it leads to")
    return file


def read_plan(config: pytest.Config) -> StormPlan | None:
    """Return the plan of `--forbear-storm-plan`, None without it; UsageError for a bad one."""
    name: str | None = config.getoption("forbear_storm_plan")
    if name is None:
        return None
    if not config.getoption("forbear_storm") or config.getoption("forbear_fault"):
        raise pytest.UsageError("`--forbear-storm-plan` goes with `--forbear-storm`, and not with `--forbear-fault`")
    folder = config.invocation_params.dir
    try:
        return StormPlan.read(folder / name, (folder, config.rootpath))
    except ValueError as error:
        raise pytest.UsageError(f"`--forbear-storm-plan`: {error}") from None
