"""Run the command line by `python -m forbear.cli`, for when no `forbear` script is on the PATH."""

from forbear.cli import main

main()
