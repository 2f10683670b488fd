"""The XML API of Cloud Storage: the operations and their handlers."""

from forbear.testing.cloud.api.resumable import cancel
from forbear.testing.cloud.call import Handlers
from forbear.testing.cloud.operations import XML_CANCEL, XML_GET, XML_PART, XML_PUT, XML_SESSION, XML_STATUS
from forbear.testing.cloud.xml import buckets, multipart, objects

XML_HANDLERS: Handlers = {
    "xml.service.get": buckets.list_buckets,
    "xml.bucket.get": buckets.get,
    "xml.bucket.get.uploads": multipart.list_uploads,
    "xml.bucket.head": buckets.head,
    "xml.bucket.put": buckets.put,
    "xml.bucket.delete": buckets.delete,
    XML_GET: objects.get,
    "xml.object.get.uploadId": multipart.list_parts,
    "xml.object.head": objects.get,
    XML_PUT: objects.put,
    "xml.object.put.copy": objects.copy,
    "xml.object.put.metadata": objects.copy,
    "xml.object.put.compose": objects.compose,
    XML_PART: multipart.put_part,
    "xml.object.put.part.copy": multipart.copy_part,
    XML_SESSION: objects.continue_session,
    XML_STATUS: objects.continue_session,
    "xml.object.post.resumable": objects.start_session,
    "xml.object.post.uploads": multipart.start,
    "xml.object.post.uploadId": multipart.complete,
    "xml.object.delete": objects.delete,
    "xml.object.delete.uploadId": multipart.abort,
    XML_CANCEL: cancel,
}
