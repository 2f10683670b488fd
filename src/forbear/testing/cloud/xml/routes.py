"""The operations of the XML API that are served, by ids of our own (the API gives none); data only."""

SESSION, STATUS, CANCEL = "xml.object.put.session", "xml.object.put.session.status", "xml.object.delete.session"

OPERATIONS = (
    "xml.service.get",
    "xml.bucket.get",
    "xml.bucket.get.uploads",
    "xml.bucket.head",
    "xml.bucket.put",
    "xml.bucket.delete",
    "xml.object.get",
    "xml.object.get.uploadId",
    "xml.object.head",
    "xml.object.put",
    "xml.object.put.copy",
    "xml.object.put.metadata",
    "xml.object.put.compose",
    "xml.object.put.part",
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
