"""HTTP/1.1 for transfers: connections, their pool and what can go wrong on them. It knows no Cloud Storage."""
