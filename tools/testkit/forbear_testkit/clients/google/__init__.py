"""What the tests of Google's clients share."""

from collections.abc import Callable
from typing import cast

from google.auth.credentials import AnonymousCredentials

ANONYMOUS = cast("Callable[[], object]", AnonymousCredentials)()
