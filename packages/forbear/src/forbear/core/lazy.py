"""Lazy exports, of a package that loads the module of a name when the name is first used, and lazy classes."""

from collections.abc import Callable, Mapping


def exports(
    package: str,
    modules: "Mapping[str, str]",
    calls: "Mapping[str, str] | None" = None,
    *,
    below: str | None = None,
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return the functions `__getattr__` and `__dir__` for the package or module whose dotted name is `package`.

    `modules` maps each public name to the module that defines it, to "module:name" if it has another name there, or to
    "module:*" for the module itself. The modules are those of the package `below`, by default of `package` itself.
    `calls` maps names to modules, too, but there the value of the name is the result of the module's function of that
    name: `policy` is then `module.policy()`.
    Other names raise AttributeError. `__dir__` lists all these names, and what the package has.

    >>> load, list_names = lazy_exports("json", {"JSONDecoder": "decoder"})
    >>> load("JSONDecoder").__name__
    'JSONDecoder'
    """
    home = package if below is None else below

    def getattribute(name: str) -> object:
        source = {**modules, **(calls or {})}.get(name)
        if source is None:  # an import statement asks each module for `__path__`
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        module, _, original = source.partition(":")
        loaded = import_module(f"{home}.{module}")
        if original == "*":
            return loaded
        value = getattr(loaded, original or name)
        return value() if name in (calls or ()) else value

    def names() -> list[str]:
        from sys import modules as loaded

        return sorted({*vars(loaded[package]), *modules, *(calls or ())})

    return getattribute, names


def late(names: "dict[str, object]", name: str, module: str) -> "Callable[..., object]":
    """Return a function that stands for a class of a `module` which few programs need, in the namespace `names`.

    The first call loads the module and puts the class into the function's place. Each call makes an object.
    """

    def make(*args: object) -> object:
        from importlib import import_module

        names[name] = loaded = getattr(import_module(module), name)
        return loaded(*args)

    return make
