"""Files, objects and summaries of transfers."""

from pathlib import Path

from forbear.testing import virtual_time
from forbear_cloud import Cloud
from forbear_transfer import Settings, Summary, rsync


def make(folder: Path, *names: str) -> None:
    """Make files, and the folders that they are in."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def contents(cloud: Cloud) -> dict[str, bytes]:
    """All objects by name."""
    bucket = cloud.store.bucket("bkt")
    return {name: bytes(cloud.store.object("bkt", name).content) for name in bucket.objects}


def files(folder: Path) -> dict[str, bytes]:
    """All files by their paths below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


INSERT, DELETE, REWRITE = "storage.objects.insert", "storage.objects.delete", "storage.objects.rewrite"


def synced(cloud: Cloud, source: str, target: str, **asked: object) -> Summary:
    """Mirror in virtual time."""
    with virtual_time():
        return rsync(source, target, settings=Settings(endpoint=cloud.url), **{"recursive": True, **asked})  # type: ignore[arg-type]


def moved(summary: Summary) -> tuple[int, int, int, int]:
    """Return how many items were done, of these deleted, skipped and failed."""
    return summary.done, summary.deleted, summary.skipped, summary.failed
