"""Measure which operations the clients of popular services execute twice by default: `make sdk-repeats`.

Each operation runs alone against a server of our own on loopback. The server executes the first request, and loses its
response, or answers 503 after it; later requests succeed. It counts what it executed.
"""
