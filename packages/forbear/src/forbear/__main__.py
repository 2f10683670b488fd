"""Run the command line by `python -m forbear`, also where no `forbear` script is on the PATH."""

from forbear.cli import main

main()
