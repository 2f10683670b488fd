"""Whether a request is signed as it stands: then nothing may be added to its query or to its headers of the service.

Source: the signing processes of Cloud Storage and Amazon S3 (versions 2 and 4), which cover the whole query and every
header whose name begins with `x-goog-` or `x-amz-`.
"""

_UNSIGNED = ("", "basic", "bearer")


def is_signed(target: str, authorization: str) -> bool:
    """Whether a URL or an Authorization header carries a signature; a scheme that is not known counts as one."""
    return "signature=" in target.lower() or authorization.partition(" ")[0].lower() not in _UNSIGNED
