"""The retrying parts of redis-py's and valkey-py's clients: mixins that are bases before the library's class."""
