"""The arguments of google-cloud-storage that make a call safe to repeat, for the notes on calls sent once."""

from forbear.core.service import Judgement

_REPLACES = "pass if_generation_match=0 for a new object, or the generation that is to be replaced"
_POLICY = "pass the policy that get_iam_policy() returned, which has an etag"

CURES = {
    "storage.buckets.patch": "pass if_metageneration_match=bucket.metageneration",
    "storage.buckets.setIamPolicy": _POLICY,
    "storage.buckets.update": "pass if_metageneration_match=bucket.metageneration",
    "storage.objects.compose": _REPLACES,
    "storage.objects.copy": _REPLACES,
    "storage.objects.delete": "pass if_generation_match=blob.generation",
    "storage.objects.insert": _REPLACES,
    "storage.objects.move": _REPLACES,
    "storage.objects.patch": "pass if_metageneration_match=blob.metageneration",
    "storage.objects.restore": _REPLACES,
    "storage.objects.rewrite": _REPLACES,
    "storage.objects.setIamPolicy": _POLICY,
    "storage.objects.update": "pass if_metageneration_match=blob.metageneration",
}
"""The cures by operation; other operations have no argument of the client that would help."""


def cure_of(judgement: Judgement) -> str | None:
    """Return what a caller must pass so that a call with this judgement may be repeated, None if nothing helps."""
    if judgement.repeatable or judgement.refused is not None:
        return None
    return CURES.get(judgement.operation or "")
