"""`python -m forbear.cli`: the command line where no `forbear` script is on the PATH."""

from forbear.cli import main

main()
