"""What forbear costs, measured next to hand-written code and other retry libraries: `python -m benchmarks --help`."""
