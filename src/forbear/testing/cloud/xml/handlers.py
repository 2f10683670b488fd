"""Which function serves which operation of the XML API; data only."""

from collections.abc import Mapping

from forbear.testing.cloud.call import Handler
from forbear.testing.cloud.xml import buckets, multipart, objects, sessions
from forbear.testing.cloud.xml.routes import XML_CANCEL, XML_GET, XML_PART, XML_PUT, XML_SESSION, XML_STATUS

HANDLERS: Mapping[str, Handler] = {
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
    XML_SESSION: sessions.continue_session,
    XML_STATUS: sessions.continue_session,
    "xml.object.post.resumable": sessions.start_session,
    "xml.object.post.uploads": multipart.start,
    "xml.object.post.uploadId": multipart.complete,
    "xml.object.delete": objects.delete,
    "xml.object.delete.uploadId": multipart.abort,
    XML_CANCEL: sessions.cancel_session,
}
