"""Which function serves which operation of the XML API; data only."""

from collections.abc import Mapping

from forbear.testing.cloud.call import Handler
from forbear.testing.cloud.xml import buckets, multipart, objects, sessions
from forbear.testing.cloud.xml.routes import CANCEL, GET, PART, PUT, SESSION, STATUS

HANDLERS: Mapping[str, Handler] = {
    "xml.service.get": buckets.list_buckets,
    "xml.bucket.get": buckets.get,
    "xml.bucket.get.uploads": multipart.list_uploads,
    "xml.bucket.head": buckets.head,
    "xml.bucket.put": buckets.put,
    "xml.bucket.delete": buckets.delete,
    GET: objects.get,
    "xml.object.get.uploadId": multipart.list_parts,
    "xml.object.head": objects.get,
    PUT: objects.put,
    "xml.object.put.copy": objects.copy,
    "xml.object.put.metadata": objects.copy,
    "xml.object.put.compose": objects.compose,
    PART: multipart.put_part,
    "xml.object.put.part.copy": multipart.copy_part,
    SESSION: sessions.proceed,
    STATUS: sessions.proceed,
    "xml.object.post.resumable": sessions.start,
    "xml.object.post.uploads": multipart.start,
    "xml.object.post.uploadId": multipart.complete,
    "xml.object.delete": objects.delete,
    "xml.object.delete.uploadId": multipart.abort,
    CANCEL: sessions.cancel,
}
