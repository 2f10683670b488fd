"""Which options of `forbear simulate` go together: each mode has its own output, and options that it would ignore."""

import click
from click.core import ParameterSource

from forbear.cli.kit.output import BadInput

_SCENARIO = ("file", "changes", "policy", "as_json")
_MODES = {
    "gallery": ("as_json",),
    "key": (*_SCENARIO, "such_that", "engine", "seed"),
    "draw_map": (*_SCENARIO, "plot"),
    "sweep": (*_SCENARIO, "compare", "engine", "runs", "seed", "workers", "plot"),
}
"""The parameters that go with the parameter of a mode, the most special mode first."""


def check_modes(context: click.Context) -> None:
    """Raise BadInput for an option that does not go with another one."""
    params = {parameter.name or "": parameter for parameter in context.command.params}
    chosen = [name for name in params if context.get_parameter_source(name) == ParameterSource.COMMANDLINE]
    for mode, allowed in _MODES.items():
        if mode in chosen:
            for name in chosen:
                if name not in (mode, *allowed):
                    option, other = _text(params[mode]), _text(params[name])
                    raise BadInput(f"`{option}` does not go with {other}", f"leave out {other}, or {option}")
    for name, needs, example in (
        ("key", "such_that", "--find attempts --such-that 'drain < 60 s'"),
        ("such_that", "key", "--find attempts --such-that 'drain < 60 s'"),
    ):
        if name in chosen and needs not in chosen:
            raise BadInput(f"`{_text(params[name])}` needs {_text(params[needs])}, too", f"write {example}")
    if "table" in chosen and "compare" in chosen:
        raise BadInput("`--csv` does not go with `--compare`", "write one file for each policy")


def _text(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else "FILE"
