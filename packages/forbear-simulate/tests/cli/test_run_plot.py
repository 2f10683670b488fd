"""`forbear simulate run --plot` where matplotlib is missing."""

from pathlib import Path

from forbear_testkit.cli.running import Finish


def test_a_plot_without_matplotlib(finish: Finish, tmp_path: Path) -> None:
    """The missing package is reported with the extra that installs it, before any output."""
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('no', name='matplotlib')")
    done = finish("simulate", "run", "--plot", str(tmp_path / "plot.png"), PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'error: this needs matplotlib, which is not installed\nhint: pip install "forbear[plot]"\n'
