"""The ids of the operations that faults, logs and uploads distinguish; each API lists all of its operations itself.

The ids are those of the APIs. The XML API has none, so its ids are our own. A resumable upload is one operation in four
steps: `storage.objects.insert.start`, `.send`, `.query` and `.cancel`.
"""

INSERT, GET, BATCH = "storage.objects.insert", "storage.objects.get", "storage.batch"
START, SEND, QUERY, CANCEL = STEPS = tuple(f"{INSERT}.{step}" for step in ("start", "send", "query", "cancel"))

XML_GET, XML_PUT, XML_PART = "xml.object.get", "xml.object.put", "xml.object.put.part"
XML_SESSION, XML_STATUS, XML_CANCEL = (
    "xml.object.put.session",
    "xml.object.put.session.status",
    "xml.object.delete.session",
)

SENDS, QUERIES = (SEND, XML_SESSION), (QUERY, XML_STATUS)
"""The steps of a resumable upload that send bytes, and those that query its state, in both APIs of Cloud Storage."""

WRITES, READS = (INSERT, XML_PUT, XML_PART, *SENDS), (GET, XML_GET)
"""The operations that send bytes to be stored, and those that can read them, in both APIs of Cloud Storage."""


def steps_of(operation: str) -> tuple[str, ...]:
    """Return the operation id, and for "storage.objects.insert" also those of the four steps of a resumable upload."""
    return (operation, *STEPS) if operation == INSERT else (operation,)
