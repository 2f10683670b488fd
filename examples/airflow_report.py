"""Publish a report every day. Library: Apache Airflow.

Airflow repeats whole tasks, minutes later. forbear repeats one request of a task, seconds later: all its attempts carry
the same `Idempotency-Key`, so the service publishes one report. Run it with `python examples/airflow_report.py`.
"""

import os
from datetime import UTC, datetime
from typing import Any

import requests
from airflow.sdk import DAG, BaseOperator

from forbear import Api, IdempotencyKey
from forbear.clients.requests import RetryAdapter

API = os.environ.get("REPORTS_URL", "https://reports.example.com")


class PublishReport(BaseOperator):
    """An operator that publishes the report of a day, and returns its number."""

    def execute(self, context: Any) -> Any:
        """Publish the report."""
        with requests.Session() as session:
            session.mount(API, RetryAdapter(apis=Api(API, key=IdempotencyKey("Idempotency-Key", add=True))))
            response = session.post(f"{API}/reports", json={"day": context["ds"]}, timeout=30)
            response.raise_for_status()
            return response.json()


with DAG("report", schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False) as dag:
    PublishReport(task_id="publish")

if __name__ == "__main__":
    dag.test()
