"""Uploads: from files and streams to objects. No module here imports downloads or plans."""
