"""gRPC on the wire: status codes, status details and pushback, and a call as a service sees it."""
