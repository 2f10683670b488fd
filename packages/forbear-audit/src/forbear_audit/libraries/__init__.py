"""The retries of each library: a module reads the calls of its libraries and returns them as `RetryUse`."""
