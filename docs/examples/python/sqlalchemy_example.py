"""Writes events with SQLAlchemy 2. Consuming is as in psycopg_example."""

import os
import secrets
import sys
import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import TIMESTAMP, create_engine, make_url
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    type_annotation_map = {datetime: TIMESTAMP(timezone=True), dict[str, Any]: JSONB}


class Account(Base):
    __tablename__ = "account"

    id: Mapped[str] = mapped_column(primary_key=True)
    balance: Mapped[int]
    version: Mapped[int]


class OutboxEvent(Base):
    """A row of the outbox. PostgreSQL fills seq and created_at: do not map them."""

    __tablename__ = "outbox_events"

    event_id: Mapped[UUID] = mapped_column(primary_key=True)
    aggregate_type: Mapped[str]
    aggregate_id: Mapped[str]
    aggregate_version: Mapped[int]
    event_type: Mapped[str]
    payload: Mapped[dict[str, Any]]
    occurred_at: Mapped[datetime]


def deposit(session: Session, event_id: UUID, account_id: str, i: int) -> None:
    """Changes the account and writes the event, in the session's transaction."""
    # With the lock: an account that was read without it has an old version, and two
    # writers would give the same one.
    account = session.get_one(Account, account_id, with_for_update=True)
    account.balance += 1
    account.version += 1
    # The aggregate first: without this flush the unit of work orders the statements,
    # and where nobody took the lock above, the event could come before the row's lock.
    session.flush()
    # On the session, never on a connection of its own (engine.begin()), and not in
    # an "after_commit" event: both can be separated from the change by a crash.
    session.add(
        OutboxEvent(
            event_id=event_id,
            aggregate_type="account",
            aggregate_id=account.id,
            aggregate_version=account.version,
            event_type="Deposited",
            payload={"amount": 1, "n": i},
            occurred_at=datetime.now(UTC),
        )
    )
    session.flush()


def write(n: int, start: int) -> None:
    url = make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg")
    engine = create_engine(url)
    for i in range(start, start + n):
        event_id = uuid7()  # once per event, before the first try
        with Session(engine) as session:
            deposit(session, event_id, f"acct-{i % 7}", i)
            if i % 10 == 9:
                session.rollback()  # takes the event along
            else:
                session.commit()  # without it the end of the block rolls back, silently


def uuid7() -> UUID:
    """A UUID of version 7: milliseconds, then random bits. Python 3.14 has uuid.uuid7()."""
    value = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    return UUID(int=value)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", n, start]:
            write(int(n), int(start))
        case _:
            sys.exit("usage: sqlalchemy_example.py write N START")
