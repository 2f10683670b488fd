"""The engine: rows of CSV tables become judgements. It knows no service."""
