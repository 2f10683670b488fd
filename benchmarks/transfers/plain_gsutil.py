"""A program: gsutil without TLS, for which it has no option; all else is its own."""

import sys
from importlib import import_module
from typing import Any

if __name__ == "__main__":
    httplib2: Any = import_module("httplib2")
    httplib2.HTTPSConnectionWithTimeout.connect = httplib2.HTTPConnectionWithTimeout.connect
    gsutil: Any = import_module("gslib.__main__")
    sys.exit(gsutil.main())
