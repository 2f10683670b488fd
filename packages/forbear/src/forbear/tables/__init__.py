"""Turn the rows of CSV tables into judgements on requests and calls. This package knows no particular service."""
