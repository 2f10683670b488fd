"""Retries that are written by hand: which loops are one, and how they end, wait and give up."""
