"""The rules of a session, tested against a model of the service: in the end there is one version, or none."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forbear_transfer.uploads.session import GRAIN, LAST, Reaction, SessionState, Step, chunk_end

SIZES = st.integers(1, 12 * GRAIN)
CHUNKS = st.integers(1, 4).map(lambda count: count * GRAIN)


@dataclass
class Service:
    """A model of the service, with one session at a time. It counts versions; data is only counted, not stored."""

    size: int
    have: int = 0
    open: bool = False
    finished: bool = False
    versions: int = 0
    sessions: int = 0

    def start(self) -> bool:
        """Begin a session, unless the precondition (no object) has failed."""
        if self.versions:
            return False
        self.have, self.open, self.finished = 0, True, False
        self.sessions += 1
        return True

    def take(self, first: int, end: int) -> None:
        """Store bytes."""
        assert first <= self.have, "the client has left a hole"
        self.have = max(self.have, end)
        if self.have == self.size and not self.finished:
            self.finished = True
            self.versions += 1

    def reply(self) -> tuple[int, dict[str, str]]:
        """Return status and headers of the response to a chunk or query."""
        if not self.open:
            return 410, {}
        if self.finished:
            return 200, {}
        return 308, {"range": f"bytes=0-{self.have - 1}"} if self.have else {}


@dataclass
class Client:
    """Drive the state machine as the real client does, and log the steps."""

    service: Service
    size: int | None
    chunk: int
    resumed: bool = False
    done: bool = False
    waits: int = 0
    log: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.state = SessionState(self.size, resumed=self.resumed)

    def step(self, event: str, keep: int) -> bool:
        """Take one step with an event; return whether the upload has ended."""
        state, service = self.state, self.service
        self.log.append(f"{state.step.name} at {state.stored} ({event})")
        if state.step is Step.START:
            if not service.start():
                assert state.in_doubt, "a version that nobody can account for"
                self.done = True
                return True
            state.started()
            return False
        sending = state.step is Step.SEND
        first, end = state.stored, state.stored
        if sending:
            if state.size is None and service.size - first <= self.chunk:
                state.size = service.size  # the end of the stream has come into sight
            end = chunk_end(first, state.size, self.chunk)
            assert first < end <= service.size
            assert end == state.size or not end % GRAIN
            state.sending(end)
        if event == "gone":
            service.open = False
        if event == "forgets" and service.open and not service.finished:
            service.have = min(service.have, keep // GRAIN * GRAIN)
        if event in ("lost before", "busy") or (event == "forgets" and sending):
            pass
        elif sending and service.open and not service.finished:
            service.take(first, first + min(keep, end - first) if event in ("part", "part, lost") else end)
        if event in ("lost before", "lost after", "part, lost"):
            state.interrupted()
            self.waits += 1
            return False
        status, headers = (503, {}) if event == "busy" else service.reply()
        reaction = state.responded(status, headers, transient=status == 503)
        assert reaction is not Reaction.REFUSED
        self.waits += reaction is Reaction.WAIT
        self.done = reaction is Reaction.DONE
        return reaction in (Reaction.DONE, Reaction.FAIL)


EVENTS = st.sampled_from(
    ["well", "well", "well", "busy", "lost before", "lost after", "part", "part, lost", "forgets", "gone"]
)
STORY = st.lists(st.tuples(EVENTS, st.integers(0, 4 * GRAIN)), max_size=40)


@given(SIZES, CHUNKS, STORY, st.booleans())
def test_it_ends_well_once_all_is_well(size: int, chunk: int, story: list[tuple[str, int]], known: bool) -> None:
    """After any faults, some steps without a fault end with one version; no step leaves a gap."""
    service = Service(size)
    client = Client(service, size if known else None, chunk)
    for event, keep in story:
        if client.step(event, keep):
            break
    else:
        for _ in range(20):
            if client.step("well", 0):
                break
    if client.done:
        assert service.versions == 1
    else:
        assert client.state.reason is not None, client.log
        assert service.versions == 0 or client.state.in_doubt


@given(SIZES, CHUNKS, st.integers(0, 12))
def test_another_process_goes_on(size: int, chunk: int, taken: int) -> None:
    """A resumed session begins with a query, and sends what is missing in as few steps as possible."""
    service = Service(size)
    service.start()
    service.take(0, min(size, taken * GRAIN))
    client = Client(service, size, chunk, resumed=True)
    steps = 0
    while not client.step("well", 0):
        steps += 1
        assert steps < 20
    assert (service.versions, service.sessions, client.waits) == (1, 1, 0)


@given(SIZES, CHUNKS)
def test_fair_weather_needs_no_questions(size: int, chunk: int) -> None:
    """Without faults there are a start and one request for each chunk."""
    client = Client(Service(size), size, chunk)
    while not client.step("well", 0):
        pass
    assert not [line for line in client.log if line.startswith("ASK")]
    assert client.waits == 0


@given(st.integers(0, 1000), SIZES | st.integers(1, 2**42), CHUNKS | st.just(64 * 1024 * 1024))
def test_chunks_cover_the_whole(first: int, size: int, chunk: int) -> None:
    """Each chunk ends beyond its beginning, and the last one has at most 8 MiB."""
    place = min(first * GRAIN, size - 1)
    for _ in range(1000):
        end = chunk_end(place, size, chunk)
        assert place < end <= size
        assert end - place <= chunk
        if end == size:
            assert end - place <= min(LAST, chunk)
            return
        assert not end % GRAIN
        place = end


@pytest.mark.parametrize("text", ["bytes=1-5", "0-5", "bytes=0-", "bytes=0-x", "bytes=0-5,7-9", "bytes=0-" + "9" * 30])
def test_an_invalid_range_is_no_answer(text: str) -> None:
    """After an invalid Range header, the next step is a query."""
    state = SessionState(GRAIN * 3)
    state.started()
    state.sending(GRAIN)
    assert state.responded(308, {"range": text}, transient=False) is Reaction.WAIT
    assert state.step is Step.ASK


def test_a_server_that_claims_more_than_was_sent_is_not_believed() -> None:
    """A server that reports more bytes than were sent, or exist, ends the upload."""
    state = SessionState(GRAIN * 3)
    state.started()
    state.sending(GRAIN)
    assert state.responded(308, {"range": f"bytes=0-{GRAIN}"}, transient=False) is Reaction.FAIL
    assert "after 262144 were sent" in str(state.reason)
    state = SessionState(GRAIN, resumed=True)
    assert state.responded(308, {"range": f"bytes=0-{GRAIN}"}, transient=False) is Reaction.FAIL


@pytest.mark.parametrize("code", [400, 412])
def test_a_refusal_is_asked_about_once(code: int) -> None:
    """A refusal (400, 412) is followed by one query; the second one counts, unless there was progress."""
    state = SessionState(GRAIN * 3)
    state.started()
    state.sending(GRAIN)
    assert state.responded(code, {}, transient=False) is Reaction.CONTINUE
    assert state.step is Step.ASK
    assert state.responded(308, {}, transient=False) is Reaction.CONTINUE
    state.sending(GRAIN)
    assert state.responded(code, {}, transient=False) is (Reaction.FAIL if code == 400 else Reaction.REFUSED)
    assert state.responded(308, {"range": f"bytes=0-{GRAIN - 1}"}, transient=False) is Reaction.PROGRESSED
    state.sending(2 * GRAIN)
    assert state.responded(code, {}, transient=False) is Reaction.CONTINUE


def test_bytes_that_are_only_regained_are_no_progress() -> None:
    """A server that loses the same bytes again and again, and takes them again, ends the upload after 16 losses."""
    state = SessionState(GRAIN * 3)
    state.started()
    full = {"range": f"bytes=0-{GRAIN - 1}"}
    reactions: list[Reaction] = []
    for _ in range(17):
        state.sending(GRAIN)
        assert state.responded(308, full, transient=False) is Reaction.PROGRESSED
        reactions.append(state.responded(308, {}, transient=False))
    assert reactions == [Reaction.WAIT] * 16 + [Reaction.FAIL]
    assert state.reason == "the server has lost stored bytes 16 times"


def test_new_progress_makes_up_for_losses() -> None:
    """The losses are counted anew once the server has more bytes than ever before."""
    state = SessionState(GRAIN * 40)
    state.started()
    for most in range(1, 20):
        state.sending(most * GRAIN)
        stored = {"range": f"bytes=0-{most * GRAIN - 1}"}
        assert state.responded(308, stored, transient=False) is Reaction.PROGRESSED
        assert state.responded(410, {}, transient=False) is Reaction.CONTINUE
        state.started()


@pytest.mark.parametrize("status", [200, 201])
def test_a_success_before_the_last_byte_is_doubtful(status: int) -> None:
    """Both statuses of success end the upload; it is unsure if not all bytes were sent."""
    for end, unsure in ((GRAIN, True), (3 * GRAIN, False)):
        state = SessionState(GRAIN * 3)
        state.started()
        state.sending(end)
        assert state.responded(status, {}, transient=False) is Reaction.DONE
        assert state.unsure is unsure
