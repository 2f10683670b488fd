"""One HTTP exchange without I/O: classify, judge, replay, resume. Every HTTP adapter only drives it."""
