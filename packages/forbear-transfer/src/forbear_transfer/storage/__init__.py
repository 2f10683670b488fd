"""The storage client: requests to Cloud Storage, with credentials, retries and limits."""
