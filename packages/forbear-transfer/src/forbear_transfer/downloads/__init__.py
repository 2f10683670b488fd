"""Downloads: from objects to files and streams. No module here imports uploads or plans."""
