"""numpy as `np`, for the parts of the simulator that need it: without it, an ImportError says what to install."""

try:
    import numpy as np
except ImportError as error:
    text = 'this part of forbear_simulate needs numpy; install it with: pip install "forbear[simulate]"'
    raise ImportError(text) from error

__all__ = ["np"]
