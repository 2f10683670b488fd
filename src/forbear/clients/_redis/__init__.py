"""The retrying parts of redis-py's and valkey-py's clients: mixins that stand before the library's class."""
