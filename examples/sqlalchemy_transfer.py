"""Move money in one database transaction. Library: SQLAlchemy, with any of its drivers.

A transaction that the database rolled back (a deadlock, a failed serialization) begins again. After a lost COMMIT its
outcome is unknown, and a function is not repeated. So every transfer has a number, and a transaction that finds the
number changes nothing. `repeatable=True` declares that a second call does no harm.
"""

import sys
import uuid

from sqlalchemy import Engine, create_engine, text

import forbear


@forbear.retry(on=forbear.transient, repeatable=True, attempts=5, timeout=60)
def transfer(engine: Engine, number: str, source: str, target: str, cents: int) -> None:
    """Move cents from one account to another, once for each number of a transfer."""
    with engine.begin() as database:
        if database.execute(text("SELECT 1 FROM transfers WHERE number = :number"), {"number": number}).first():
            return
        database.execute(text("INSERT INTO transfers VALUES (:number)"), {"number": number})
        move = text("UPDATE accounts SET cents = cents + :cents WHERE owner = :owner")
        database.execute(move, [{"owner": source, "cents": -cents}, {"owner": target, "cents": cents}])


@forbear.retry(on=forbear.transient.transaction, repeatable=False, attempts=5, timeout=60)
def deposit(engine: Engine, target: str, cents: int) -> None:
    """Add cents to an account; without a number, it is not repeated after a lost COMMIT."""
    with engine.begin() as database:
        move = text("UPDATE accounts SET cents = cents + :cents WHERE owner = :owner")
        database.execute(move, {"owner": target, "cents": cents})


if __name__ == "__main__":
    bank = create_engine(sys.argv[1])
    transfer(bank, str(uuid.uuid4()), sys.argv[2], sys.argv[3], int(sys.argv[4]))
