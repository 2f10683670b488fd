"""Downloads: from objects to files and streams. They know no uploads and no plans."""
