"""One Redis command, pipeline or transaction through its attempts, for any client library."""
