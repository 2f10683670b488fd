"""A library that an export makes an object of: where it is missing, the error says what to do. It loads none itself."""

from types import TracebackType


class needed:  # noqa: N801 - used like a function
    """`with needed("tenacity", "tenacity"):` around its import; `target` is what is exported to, `package` on PyPI."""

    __slots__ = ("_package", "_target")

    def __init__(self, target: str, package: str) -> None:
        self._target = target
        self._package = package

    def __enter__(self) -> None:
        """Nothing has to be prepared."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, ImportError):
            raise ImportError(
                f'forbear.export.{self._target} needs {self._package}; install it with: pip install "{self._package}", '
                f'or take the text that forbear.export.source("{self._target}", policy) makes without it'
            ) from error
