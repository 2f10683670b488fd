"""The XML API of Cloud Storage, over the same buckets and objects as the JSON API; a part of the embedded cloud."""
