"""The ledger of a run as its tests use it: judgements, entries, and an empty ledger in virtual time."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

import forbear
from forbear.core.service import Judgement
from forbear.core.verdict import Safety
from forbear.run import harm, ledger
from forbear.run.ledger import Entries, Entry
from forbear.testing import virtual_time

WHY = "it has charged somebody"
SAFE = Judgement("shop", None, Safety.ALWAYS, repeatable=True)
HARMFUL = Judgement("shop", None, Safety.NEVER, refused=WHY)
IN_DOUBT = Judgement("shop", None, Safety.ALWAYS, repeatable=True, maybe_done=(409,))
POLICY = forbear.retry(ValueError, attempts=3, timeout=None, backoff=forbear.Constant(5))


@contextmanager
def empty_ledger(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Begin with an empty ledger, in virtual time, and not at zero."""
    monkeypatch.setattr(ledger, "_of_threads", dict[int, Entries]())
    harm.watch()
    with virtual_time() as time:
        time.advance(50)
        yield


def entry_of(judgement: Judgement) -> Entry:
    """Return an entry with this judgement."""
    return Entry(lambda *_: judgement)


def own_entries() -> Entries:
    """Return the entries of this thread."""
    return ledger._of_threads[threading.get_ident()]


def work_in_thread(work: Callable[[], object]) -> None:
    """Do some work in another thread, which has no context of this one."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
