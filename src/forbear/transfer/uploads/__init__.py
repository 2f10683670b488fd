"""Uploads: from files and streams to objects. They know no downloads and no plans."""
