"""One module for each system that policies are exported to; none knows another. `forbear.export` is the way in."""
