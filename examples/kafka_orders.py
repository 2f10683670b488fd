"""Write orders to Kafka in transactions, each once. Library: confluent-kafka.

If the brokers are slow, `commit_transaction` raises a KafkaError that is `retriable()`. Then it may be called again,
and resumes the same commit. After any other error the transaction is aborted.
"""

import sys
from collections.abc import Iterable

from confluent_kafka import Producer

import forbear


@forbear.retry(on=forbear.transient, attempts=None, timeout=300)
def commit(producer: Producer, patience: float) -> None:
    """Commit the transaction; each attempt takes at most `patience` seconds."""
    producer.commit_transaction(patience)


def publish(producer: Producer, orders: Iterable[str], patience: float = 10) -> None:
    """Write orders in one transaction."""
    producer.begin_transaction()
    try:
        for order in orders:
            producer.produce("orders", order.encode())
        commit(producer, patience)
    except Exception:
        producer.abort_transaction(patience)
        raise


if __name__ == "__main__":
    brokers = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "orders"})
    brokers.init_transactions()
    publish(brokers, sys.argv[2:])
