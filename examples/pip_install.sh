#!/bin/sh
# Install packages from an index that is sometimes down: examples/pip_install.sh --index-url URL PACKAGE
#
# pip exits with 1 after a lost connection, and installs nothing then. pip's own retries are off (--retries 0), because
# retries within retries would multiply.
exec forbear run --attempts 5 --timeout 5m --initial "${INITIAL:-1s}" -- python -m pip install --retries 0 "$@"
