"""The parts that the adapters of botocore and aiobotocore share: a call's attempts, its outcomes, and the events."""

try:
    from botocore.client import BaseClient as BaseClient
except ImportError as error:
    raise ImportError(
        'forbear.clients.botocore needs botocore; install it with: pip install "forbear[boto3]"'
    ) from error
