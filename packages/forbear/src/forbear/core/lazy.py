"""Lazy exports: a package that loads the module of a public name when the name is first used."""

from collections.abc import Callable, Mapping


def exports(
    package: str, modules: "Mapping[str, str]", calls: "Mapping[str, str] | None" = None
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return the functions `__getattr__` and `__dir__` for the package whose dotted name is `package`.

    `modules` maps each public name to the module of the package that defines it. `calls` maps names to modules, too,
    but there the value of the name is the result of the module's function of that name: `policy` is then
    `module.policy()`. Other names raise AttributeError. `__dir__` lists all these names, and what the package has.
    """

    def getattribute(name: str) -> object:
        from importlib import import_module

        if name in modules:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        if calls and name in calls:
            return getattr(import_module(f"{package}.{calls[name]}"), name)()
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        from sys import modules as loaded

        return sorted({*vars(loaded[package]), *modules, *(calls or ())})

    return getattribute, names
