"""Writes and consumes events with psycopg 3 and confluent-kafka."""

import json
import os
import secrets
import sys
import time
from typing import cast
from uuid import UUID

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from psycopg.types.json import Jsonb

IDLE = 10.0  # seconds


class VersionGap(Exception):
    """An event came whose predecessor has not been seen."""


# ---- the writer


def write(db: psycopg.Connection, n: int, start: int) -> None:
    for i in range(start, start + n):
        # Once per event, before the first try: a try after an error has the same id.
        event_id = uuid7()
        # Not two executes without this block: the event would outlive a rollback.
        with db.transaction():
            deposit(db, event_id, f"acct-{i % 7}", i)
            if i % 10 == 9:
                raise psycopg.Rollback  # takes the event along


def deposit(db: psycopg.Connection, event_id: UUID, account: str, i: int) -> None:
    """Changes the account and writes the event, in the transaction that db is in."""
    # The aggregate first: the update locks its row. A version that was read before
    # the lock, and raised here, would be given twice.
    row = db.execute(
        """update account set balance = balance + 1, version = version + 1
            where id = %s returning version""",
        (account,),
    ).fetchone()
    if row is None:
        raise LookupError(f"there is no account {account}")
    # The event last, on the same connection.
    db.execute(
        """insert into outbox_events (event_id, aggregate_type, aggregate_id,
                  aggregate_version, event_type, payload, occurred_at)
           values (%s, 'account', %s, %s, 'Deposited', %s, now())""",
        (event_id, account, row[0], Jsonb({"amount": 1, "n": i})),
    )


def uuid7() -> UUID:
    """A UUID of version 7: milliseconds, then random bits. Python 3.14 has uuid.uuid7()."""
    value = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    return UUID(int=value)


# ---- the consumer


def consume(db: psycopg.Connection, n: int) -> None:
    name = os.environ["CONSUMER"]
    crash_after = int(os.environ.get("CRASH_AFTER", "0"))
    kafka = Consumer(
        {
            "bootstrap.servers": os.environ["KAFKA_BROKERS"],
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # it would commit what is not done yet
        }
    )
    # With a callback a partition is given away inside poll, and not in the middle of
    # a record; without one, whenever the group says so.
    kafka.subscribe([os.environ["TOPIC"]], on_revoke=lambda consumer, partitions: None)
    try:
        for seen in range(1, n + 1):
            record = kafka.poll(IDLE)
            if record is None:
                return
            if record.error():
                raise KafkaException(record.error())
            # Whatever is raised here ends the loop. Do not log it and go on: the next
            # record's offset would pass this one.
            process(db, name, record)
            if seen == crash_after:
                os._exit(42)  # for the test of what a crash does
            commit_offset(kafka, record)
    finally:
        kafka.close()


# What the broker answers to a member that has lost the partition.
THROWN_OUT = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
}


def commit_offset(kafka: Consumer, record: Message) -> None:
    """Only after the transaction: whatever happened before, the record comes again."""
    try:
        # Not asynchronous, which is the default and does not say what went wrong.
        kafka.commit(message=record, asynchronous=False)
    except KafkaException as e:
        # Its next owner gets the record again and finds the event in processed_events.
        if e.args[0].code() not in THROWN_OUT:
            raise


def process(db: psycopg.Connection, consumer: str, record: Message) -> None:
    """One transaction: the event's id, the aggregate's version, the effect."""
    with db.transaction():
        if claim(db, consumer, record):
            apply(db, record)


def claim(db: psycopg.Connection, consumer: str, record: Message) -> bool:
    """Says whether the event is to be applied; not one that has been."""
    event_id = header(record, "id")
    aggregate = header(record, "aggregate_type"), aggregate_id(record)
    version = int(header(record, "aggregate_version"))
    # Not "except UniqueViolation": the transaction would be aborted. And not a select
    # before: two consumers would both find nothing.
    inserted = db.execute(
        """insert into processed_events (consumer, event_id) values (%s, %s)
           on conflict do nothing""",
        (consumer, event_id),
    )
    if inserted.rowcount == 0:
        return False  # a duplicate
    moved = db.execute(
        """insert into consumer_positions as p (consumer, aggregate_type, aggregate_id, version)
           values (%s, %s, %s, %s)
           on conflict (consumer, aggregate_type, aggregate_id) do update
              set version = excluded.version, updated_at = now()
            where p.version = excluded.version - 1""",
        (consumer, *aggregate, version),
    )
    if moved.rowcount == 1:
        return True  # the next version, or the first one seen, which need not be 1
    row = db.execute(
        """select version from consumer_positions
            where consumer = %s and aggregate_type = %s and aggregate_id = %s""",
        (consumer, *aggregate),
    ).fetchone()
    if row is None or version > row[0]:
        # Raised, not returned: processed_events must not keep the event.
        raise VersionGap(
            f"{' '.join(aggregate)}: version {version} came after version {row and row[0]}; "
            "find the events between them before going on"
        )
    return False  # stale: passed before


def apply(db: psycopg.Connection, record: Message) -> None:
    """The effect."""
    value = record.value()
    if value is None:
        raise ValueError(f"no payload at offset {record.offset()}")
    db.execute(
        """insert into account_view as v (id, balance, events) values (%s, %s, 1)
           on conflict (id) do update
              set balance = v.balance + excluded.balance, events = v.events + 1""",
        (aggregate_id(record), json.loads(value)["amount"]),
    )


def aggregate_id(record: Message) -> str:
    key = record.key()
    if key is None:
        raise ValueError(f"no key at offset {record.offset()}: not a record of walpost")
    return key.decode()


def header(record: Message, name: str) -> str:
    headers = cast(list[tuple[str, bytes | None]], record.headers() or [])
    for key, value in headers:
        if key == name and value is not None:  # of several the first counts
            return value.decode()
    raise ValueError(
        f"no header {name} at offset {record.offset()} of partition {record.partition()}: "
        "not a record of walpost"
    )


def main(args: list[str]) -> None:
    # Autocommit on: db.transaction() is then always a transaction of its own. With
    # it off, an execute before the block begins one that the block does not commit.
    # The timeout is for locks of a consumer that the group has thrown out.
    with psycopg.connect(
        os.environ["DATABASE_URL"], autocommit=True, options="-c lock_timeout=30s"
    ) as db:
        match args:
            case ["write", n, start]:
                write(db, int(n), int(start))
            case ["consume", n]:
                consume(db, int(n))
            case _:
                sys.exit("usage: psycopg_example.py write N START | consume N")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except VersionGap as gap:
        print(gap, file=sys.stderr)
        sys.exit(4)
