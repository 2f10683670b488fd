"""An HTTP/1.1 server that knows no API: messages, connections, content, allowed hosts, and the limit of memory."""
