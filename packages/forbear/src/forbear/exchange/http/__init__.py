"""One HTTP request through its attempts, without I/O: classify it, replay its body, continue its download or upload."""
