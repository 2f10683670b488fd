"""The operations of the XML API that are served, by ids of our own (the API gives none); data only."""

GET, PUT, PART = "xml.object.get", "xml.object.put", "xml.object.put.part"
SESSION, STATUS, CANCEL = "xml.object.put.session", "xml.object.put.session.status", "xml.object.delete.session"

OPERATIONS = (
    "xml.service.get",
    "xml.bucket.get",
    "xml.bucket.get.uploads",
    "xml.bucket.head",
    "xml.bucket.put",
    "xml.bucket.delete",
    GET,
    "xml.object.get.uploadId",
    "xml.object.head",
    PUT,
    "xml.object.put.copy",
    "xml.object.put.metadata",
    "xml.object.put.compose",
    PART,
    "xml.object.put.part.copy",
    SESSION,
    STATUS,
    "xml.object.post.resumable",
    "xml.object.post.uploads",
    "xml.object.post.uploadId",
    "xml.object.delete",
    "xml.object.delete.uploadId",
    CANCEL,
)
