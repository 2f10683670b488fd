"""Upload a report once, under a new name. Library: google-cloud-storage.

With `if_generation_match=0` the upload may be repeated, because the service writes the object only once. If the
response to the first attempt was lost, the second one is refused: then the object is there, and has this text.
"""

import sys

from google.api_core.exceptions import PreconditionFailed
from google.cloud import storage

from forbear.clients.google_storage import install


def publish(client: storage.Client, bucket: str, name: str, text: str) -> None:
    """Upload a report; PreconditionFailed if there is another one of this name."""
    blob = install(client).bucket(bucket).blob(name)
    try:
        blob.upload_from_string(text, if_generation_match=0)
    except PreconditionFailed:
        if blob.download_as_text() != text:
            raise


if __name__ == "__main__":
    publish(storage.Client(), *sys.argv[1:])
