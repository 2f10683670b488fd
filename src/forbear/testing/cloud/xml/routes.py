"""The operations of the XML API that are served, by ids of our own (the API gives none); data only."""

XML_GET, XML_PUT, XML_PART = "xml.object.get", "xml.object.put", "xml.object.put.part"
XML_SESSION, XML_STATUS, XML_CANCEL = "xml.object.put.session", "xml.object.put.session.status", "xml.object.delete.session"

XML_OPERATIONS = (
    "xml.service.get",
    "xml.bucket.get",
    "xml.bucket.get.uploads",
    "xml.bucket.head",
    "xml.bucket.put",
    "xml.bucket.delete",
    XML_GET,
    "xml.object.get.uploadId",
    "xml.object.head",
    XML_PUT,
    "xml.object.put.copy",
    "xml.object.put.metadata",
    "xml.object.put.compose",
    XML_PART,
    "xml.object.put.part.copy",
    XML_SESSION,
    XML_STATUS,
    "xml.object.post.resumable",
    "xml.object.post.uploads",
    "xml.object.post.uploadId",
    "xml.object.delete",
    "xml.object.delete.uploadId",
    XML_CANCEL,
)
