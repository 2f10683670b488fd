"""RPCs that no service's table has: `rules.judge` is the one judgement on them, over gRPC and over REST transports."""
