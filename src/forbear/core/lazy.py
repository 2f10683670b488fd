"""Lazy exports: a package that loads the module of a public name when the name is first used."""

from collections.abc import Callable, Mapping


def exports(
    package: str, modules: "Mapping[str, str]", calls: "Mapping[str, str] | None" = None
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return the `__getattr__` and `__dir__` of `package`.

    `modules` maps each public name to the module of the package that defines it. `calls` does the same for names whose
    value is the result of a function: `policy` is then `module.policy()`.
    """

    def getattribute(name: str) -> object:
        from importlib import import_module

        if name in modules:
            return getattr(import_module(f"{package}.{modules[name]}"), name)
        if calls and name in calls:
            return getattr(import_module(f"{package}.{calls[name]}"), name)()
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*modules, *(calls or ())})

    return getattribute, names
