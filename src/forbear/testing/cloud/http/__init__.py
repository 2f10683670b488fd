"""An HTTP/1.1 server that knows no API: messages, connections, content, and the limit of memory."""
