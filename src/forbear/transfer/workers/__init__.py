"""Work: items are done here, many at a time. How they came about is not known."""
