"""Ask a bank for the rate of a currency, by a function that tenacity retried before. Library: requests.

The six options of tenacity were:

    @retry(
        retry=retry_if_exception_type(requests.ConnectionError) | retry_if_result(is_pending),
        stop=stop_after_attempt(4) | stop_after_delay(60),
        wait=wait_random_exponential(multiplier=1, max=10),
        before_sleep=before_sleep_log(logging.getLogger("rates"), logging.WARNING),
        after=after_log(logging.getLogger("rates"), logging.DEBUG),
        retry_error_callback=lambda state: None,
    )

forbear warns of each retry by itself, so that `before_sleep` and `after` need nothing.
"""

import sys

import requests

import forbear


def is_pending(rate: float | None) -> bool:
    """Return whether the bank has no rate yet."""
    return rate == 0


WAITS = forbear.Exponential(initial=1, maximum=10)


@forbear.retry(requests.ConnectionError, on_result=is_pending, attempts=4, timeout=60, backoff=WAITS, on_give_up=None)
def rate(bank: str, currency: str) -> float | None:
    """Return the rate of a currency, None if the bank cannot be reached or has no rate yet."""
    return float(requests.get(f"{bank}/rates/{currency}", timeout=10).json())


if __name__ == "__main__":
    print(rate(sys.argv[1], sys.argv[2]))
