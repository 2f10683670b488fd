"""gRPC on the wire: status codes, status details and pushback, and a call in the form that services judge."""
