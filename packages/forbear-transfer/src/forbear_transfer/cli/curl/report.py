"""The report of a run: events as text while it goes on, and one JSON object at its end."""

import json
from collections.abc import Sequence

import click

from forbear.adapters import Judgement, dataclass, hide_in_path, suggest_patterns
from forbear.cli.kit.output import EventPrinter, advise
from forbear.events import Attempt, Event, GaveUp, Reason, Recovered, Report, Scheduled
from forbear_transfer.cli.curl.hop import Hop


@dataclass(slots=True)
class HopReport:
    """The report on one request of a run; it is the listener of the request's events.

    With `printer`, events are printed as they happen, and a hint follows a stop that the user can prevent by a vouch.
    """

    hop: Hop
    judgement: Judgement
    printer: EventPrinter | None
    failures: Sequence[Attempt] = ()
    gave_up: Report | None = None
    retries: int = 0
    status: int | None = None

    def __call__(self, event: Event) -> None:
        if self.printer is not None:
            self.printer(event)
        if isinstance(event, Scheduled):
            self.retries += 1
            self.failures = (*self.failures[-31:], event.failure)
        elif isinstance(event, Recovered):
            self.failures = event.failures
        elif isinstance(event, GaveUp):
            self.gave_up, self.failures = event.report, event.report.attempts
            if self.printer is not None:
                self._name_cure(event.report)

    def document(self) -> dict[str, object]:
        """Return the report as a JSON object; it has no query, no header and no body."""
        request, judgement, gave_up = self.hop.request, self.judgement, self.gave_up
        return {
            "method": request.method,
            "host": self.hop.url.netloc.decode("ascii"),
            "path": hide_in_path(request),
            "service": judgement.service,
            "operation": judgement.operation,
            "safety": judgement.safety.value,
            "repeatable": judgement.repeatable,
            "vouched": judgement.vouched,
            "status": self.status,
            "attempts": self.retries + 1,
            "failures": [
                {
                    "number": failure.number,
                    "error": failure.error,
                    "text": failure.text,
                    "elapsed": round(failure.elapsed, 3),
                    "delay": None if failure.delay is None else round(failure.delay, 3),
                }
                for failure in self.failures
            ],
            "gave_up": None if gave_up is None else gave_up.text,
            "maybe_done": gave_up is not None and gave_up.maybe_done,
        }

    def _name_cure(self, report: Report) -> None:
        judgement, request = self.judgement, self.hop.request
        if report.reason is not Reason.UNSAFE or judgement.refused is not None or judgement.session:
            return
        options = " ".join(f"--safe '{pattern}'" for pattern in suggest_patterns(request))
        if options:
            advise(f"if a second execution does no harm, vouch for it: {options}")


def print_json(reports: Sequence[HopReport], code: int, elapsed: float) -> None:
    """Print the reports on all requests of a run, its exit code and its seconds, as one line of JSON to stderr."""
    requests = [report.document() for report in reports]
    click.echo(json.dumps({"exit_code": code, "elapsed": round(elapsed, 3), "requests": requests}), err=True)
