"""Adapters that add retries to client libraries at each library's own extension point, a module or package for each."""

TYPE_CHECKING = False
if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __dir__():
        """Return the names of the adapters, for shells."""
        from pkgutil import iter_modules

        return [found.name for found in iter_modules(__path__) if not found.name.startswith("_")]

    def __getattr__(name):
        """Load an adapter when it is first used."""
        if name not in __dir__():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
