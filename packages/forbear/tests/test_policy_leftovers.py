"""Keywords and decorators of other retry libraries are refused at once, with forbear's own spelling."""

from typing import Any

import backoff
import pytest
import tenacity

from forbear.policy import retry

FOREIGN = [
    ({"stop": tenacity.stop_after_attempt(3)}, "`stop` must not be tenacity's stop_after_attempt: write attempts=3;"),
    ({"stop": tenacity.stop_after_delay(30)}, "`stop` must not be tenacity's stop_after_delay: write timeout=30"),
    ({"stop": tenacity.stop_any(tenacity.stop_after_attempt(3))}, "pass attempts= and timeout= instead"),
    ({"backoff": tenacity.wait_fixed(2)}, "write backoff=forbear.Constant(2.0)"),
    ({"backoff": tenacity.wait_exponential()}, "pass forbear.Exponential(initial, multiplier, maximum)"),
    ({"backoff": backoff.expo}, "`backoff` must not be backoff's expo: pass forbear.Exponential("),
    ({"delay": tenacity.wait_fixed(2)}, "`delay` must not be tenacity's wait_fixed: write backoff=forbear.Constant("),
    ({"on": tenacity.retry_if_exception_type(OSError)}, "pass exception types, forbear.transient, or a function"),
    ({"on_result": tenacity.retry_if_result(bool)}, "pass a function of the value that returns True for a retry"),
    ({"wait": 1}, "`retry` takes no `wait`: write `backoff`"),
    ({"max_attempts": 1}, "`retry` takes no `max_attempts`: write `attempts`"),
    ({"max_tries": 1}, "`retry` takes no `max_tries`: write `attempts`"),
    ({"max_retries": 1}, "write `attempts`, which counts the first call, too"),
    ({"total": 1}, "`retry` takes no `total`: write `attempts`"),
    ({"reraise": True}, "`retry` takes no `reraise`: leave it out, because the last error is always raised"),
    ({"atempts": 3}, "`retry` takes no `atempts`: did you mean `attempts`?"),
    ({"before": print}, "`retry` takes no `before`: write `on_event`"),
    ({"after": print}, "`retry` takes no `after`: write `on_event`"),
    ({"before_sleep": print}, "`retry` takes no `before_sleep`: write `on_event`"),
    ({"retry_error_callback": print}, "`retry` takes no `retry_error_callback`: write `on_give_up`"),
    ({"backoff_factor": 1}, "`retry` takes no `backoff_factor`: write `backoff`"),
    ({"wait_max": 1}, "`retry` takes no `wait_max`: write backoff=forbear.Exponential(maximum=...)"),
    ({"zzz": 3}, "`retry` takes no `zzz`: it takes on, attempts, timeout"),
]


@pytest.mark.parametrize(("options", "text"), FOREIGN, ids=[text for _, text in FOREIGN])
def test_leftovers_of_other_libraries_are_refused(options: dict[str, Any], text: str) -> None:
    """The error comes where the policy is made, and says how forbear spells it."""
    make: Any = retry
    with pytest.raises(TypeError) as caught:
        make(**{"on": OSError} | options)
    assert text in str(caught.value)
