"""Commands on objects besides copies: list, show, read, move, delete, measure, hash and compare."""
