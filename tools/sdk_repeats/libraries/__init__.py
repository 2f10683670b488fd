"""The client libraries, one module each or two that are alike: their operations, and the responses to them."""
