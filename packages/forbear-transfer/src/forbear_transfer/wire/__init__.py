"""HTTP/1.1 for transfers: connections, their pool, responses and errors."""
