"""Commands of Redis and Valkey on their way through a client library: which of them it may send again, and when."""
