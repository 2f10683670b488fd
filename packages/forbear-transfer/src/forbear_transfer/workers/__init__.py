"""The workers that transfer items, many at a time, and the manifest of what they have done."""
