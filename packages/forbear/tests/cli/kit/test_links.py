"""Links in folders of others: which of them lead a file out of its folder."""

from pathlib import Path

import pytest

from forbear.cli.kit.links import leads_out, real

# The links of a folder, the folder that is current, what is read, the file, and whether it leads out.
CASES = {
    "no link": ({}, "repo", ".", "plan", False),
    "a link out": ({"repo/plan": "../own"}, "repo", ".", "plan", True),
    "an absolute link out": ({"repo/plan": "/own"}, "repo", ".", "plan", True),
    "a link to nothing": ({"repo/plan": "../new"}, "repo", ".", "plan", True),
    "a folder that leads out": ({"repo/out": "../home"}, "repo", ".", "out/plan", True),
    "a link inside": ({"repo/plan": "src/a"}, "repo", ".", "plan", False),
    "over two links": ({"repo/plan": "next", "repo/next": "../own"}, "repo", ".", "plan", True),
    "out and in again": ({"repo/out": "../home"}, "repo", ".", "out/../repo/plan", False),
    "beside what is read": ({"repo/plan": "../own"}, "repo", "src", "plan", True),
    "beside the file that is read": ({"repo/src/plan": "../../own"}, "home", "../repo/src/a", "../repo/src/plan", True),
    "out of the part that is read": ({"repo/src/plan": "../plan"}, "repo", "src", "src/plan", True),
    "to a folder around it": ({"repo/plan": "../own"}, ".", "repo", "repo/plan", True),
    "above in the repository": ({"repo/plan": "../own"}, "repo/src", ".", "../plan", True),
    "the repository of the current folder": ({"repo/plan": "../own"}, "repo/src", None, "../plan", True),
    "by a link of the user": ({"home/mine": "../repo/plan", "repo/plan": "../own"}, "home", "../repo", "mine", True),
    "a link of the user": ({"home/mine": "../own"}, "home", "../repo", "mine", False),
    "a link of the user to what is read": ({"home/mine": "../repo/src"}, "home", "../repo", "mine/plan", False),
    "nothing of others": ({"home/mine": "../own"}, "home", None, "mine", False),
    "a device": ({}, "repo", ".", "/dev/stdout", False),
    "a circle": ({"repo/plan": "plan"}, "repo", ".", "plan", False),
    "a circle of folders": ({"repo/a": "b", "repo/b": "a"}, "repo", ".", "a/plan", False),
}


@pytest.mark.parametrize("case", CASES)
def test_a_link_out_of_the_folder_is_seen(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link counts where it stands, and it leads out if the file is not below each folder of others around it."""
    links, here, read, file, leads = CASES[case]
    for name in ("repo/.git", "repo/src", "home"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "repo/src/a").touch()
    for name, target in links.items():
        (tmp_path / name).symlink_to(target if target[0] != "/" else tmp_path / target[1:])
    monkeypatch.chdir(tmp_path / here)
    led = leads_out(Path(file), () if read is None else (Path(read),))
    assert (led is not None) is leads
    if led is not None:
        assert led[0].is_symlink()
        assert led[1] == real(Path(file))
