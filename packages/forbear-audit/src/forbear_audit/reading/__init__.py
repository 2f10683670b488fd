"""Code as it is read: files, modules, syntax, and a retry in the words that all rules share."""
