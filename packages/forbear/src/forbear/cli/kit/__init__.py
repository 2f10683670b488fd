"""The parts that commands share: output and errors, options and their values, events, shell completion and plots.

Commands of other packages may use it, too. A command that raises BadInput or Problem gets the lines and the exit code
that all commands have.
"""
