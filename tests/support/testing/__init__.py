"""Helpers for the tests of `forbear.testing`."""
