"""The parts that the adapters of botocore and aiobotocore share: a call's attempts, its outcomes, and the events."""
