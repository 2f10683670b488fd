"""forbear's `cp`, as a function."""

from importlib.metadata import version as installed

from benchmarks.transfers import measured
from benchmarks.transfers.task import BUCKET, Outcome, Task
from forbear_transfer import ANONYMOUS, Settings, cp


def version() -> str:
    return installed("forbear")


def run(task: Task) -> Outcome:
    settings = Settings(endpoint=task.url, credentials=ANONYMOUS)
    files, objects = task.folder, f"gs://{BUCKET}/{task.prefix}"
    sources, target = (f"{files}/*", objects) if task.up else (f"{objects}*", files)

    def transfer() -> list[str]:
        return [outcome.error or "" for outcome in cp(sources, target, settings=settings).failures]

    return measured.call(transfer)
