"""The credentials for tests of Google's clients."""

from collections.abc import Callable
from typing import cast

from google.auth.credentials import AnonymousCredentials

ANONYMOUS = cast("Callable[[], object]", AnonymousCredentials)()
