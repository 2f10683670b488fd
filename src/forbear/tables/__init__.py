"""Turn the rows of CSV tables into judgements on requests and calls. This room knows no service."""
