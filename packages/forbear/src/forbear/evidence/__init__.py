"""Read what an error shows of the requests that failed, from its attributes and frames; no user code runs."""

from forbear.evidence.walk import read as read
