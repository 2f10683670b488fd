"""Reserve a seat in a table of DynamoDB. Library: boto3.

The condition makes the write safe to repeat: if the response to the first attempt was lost, the second one is refused,
and the table says who has the seat. The library's own retries are off: retries within retries would multiply.
"""

import sys
from typing import Any

import boto3
from botocore.config import Config

import forbear


def connect(**options: Any) -> Any:
    """Return a client of DynamoDB."""
    return boto3.client("dynamodb", config=Config(retries={"total_max_attempts": 1}), **options)


@forbear.retry(on=forbear.transient, attempts=5, timeout=60)
def reserve(client: Any, seat: str, name: str) -> bool:
    """Reserve a seat; return False if somebody else has it."""
    item, free = {"seat": {"S": seat}, "holder": {"S": name}}, "attribute_not_exists(seat)"
    try:
        client.put_item(TableName="seats", Item=item, ConditionExpression=free)
    except client.exceptions.ConditionalCheckFailedException:
        row = client.get_item(TableName="seats", Key={"seat": {"S": seat}}, ConsistentRead=True)
        return bool(row["Item"]["holder"]["S"] == name)
    return True


if __name__ == "__main__":
    print(reserve(connect(), sys.argv[1], sys.argv[2]))
