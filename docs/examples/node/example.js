// Writes and consumes events with pg and kafkajs.
import { Kafka, logLevel } from 'kafkajs';
import pg from 'pg';
import { v7 as uuidv7 } from 'uuid';

const idleMs = 10_000;

class VersionGap extends Error {}
class Rollback extends Error {}

// transaction runs work in one transaction on one connection. Not pool.query('BEGIN'):
// each query of a pool takes any connection.
async function transaction(pool, work) {
  const client = await pool.connect();
  let broken;
  try {
    await client.query('BEGIN');
    await work(client);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch((e) => { broken = e; });
    throw error;
  } finally {
    client.release(broken); // with an error it is closed, not used again
  }
}

// ---- the writer

async function write(pool, n, start) {
  for (let i = start; i < start + n; i++) {
    const eventId = uuidv7(); // once per event, before the first try
    try {
      await transaction(pool, async (client) => {
        await deposit(client, eventId, `acct-${i % 7}`, i);
        if (i % 10 === 9) throw new Rollback(); // takes the event along
      });
    } catch (error) {
      if (!(error instanceof Rollback)) throw error;
    }
  }
}

// deposit changes the account and writes the event, in the client's transaction.
async function deposit(client, eventId, account, i) {
  // The aggregate first: the update locks its row, and its new version is the event's.
  const { rows } = await client.query(
    'update account set balance = balance + 1, version = version + 1 where id = $1 returning version',
    [account],
  );
  if (rows.length === 0) throw new Error(`there is no account ${account}`);
  // The event last, on the same client, and with await: what is not awaited can fail
  // after the COMMIT. A bigint is a string here: pass it on, version + 1 is '51'.
  await client.query(
    `insert into outbox_events (event_id, aggregate_type, aggregate_id,
            aggregate_version, event_type, payload, occurred_at)
     values ($1, 'account', $2, $3, 'Deposited', $4, now())`,
    [eventId, account, rows[0].version, JSON.stringify({ amount: 1, n: i })],
  );
}

// ---- the consumer

async function consume(pool, n) {
  const name = process.env.CONSUMER;
  const crashAfter = Number(process.env.CRASH_AFTER ?? 0);
  // kafkajs reads uncompressed records, as walpost writes them by default, and gzip. For
  // another kafka.compression it needs a codec: see its CompressionCodecs.
  const kafka = new Kafka({ brokers: process.env.KAFKA_BROKERS.split(','), logLevel: logLevel.ERROR });
  const consumer = kafka.consumer({ groupId: name, maxWaitTimeInMs: 500 });
  await consumer.connect();
  await consumer.subscribe({ topic: process.env.TOPIC, fromBeginning: true });
  try {
    await new Promise((resolve, reject) => {
      let over = false;
      const end = (settle, reason) => {
        over = true;
        clearTimeout(idle);
        settle(reason);
      };
      const idle = setTimeout(end, idleMs, resolve);
      consumer.on(consumer.events.GROUP_JOIN, () => over || idle.refresh());
      // Errors that kafkajs does not recover from by itself.
      consumer.on(consumer.events.CRASH, ({ payload }) => payload.restart || end(reject, payload.error));
      let seen = 0;
      consumer.run({
        autoCommit: false, // it would commit by time and number
        eachBatchAutoResolve: false, // it would take a batch that returns early for done
        eachBatch: async ({ batch, heartbeat, resolveOffset, isRunning, isStale }) => {
          for (const message of batch.messages) {
            if (over || !isRunning() || isStale()) return;
            try {
              await apply(pool, name, batch, message); // without await the offset would be first
            } catch (error) {
              // Thrown, kafkajs would try the batch again, and for a gap in vain.
              return end(reject, error);
            }
            seen++;
            if (seen === crashAfter) process.exit(42); // for the test of what a crash does
            // Only now, and of this record. An error goes to kafkajs: if the partition
            // was lost, its next owner finds the event in processed_events.
            const offset = String(BigInt(message.offset) + 1n);
            await consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset }]);
            resolveOffset(message.offset);
            if (seen === n) return end(resolve);
            idle.refresh();
            await heartbeat(); // throws in a rebalance, which makes kafkajs join again
          }
        },
      }).catch((error) => end(reject, error));
    });
  } finally {
    await consumer.disconnect();
  }
}

// apply is one transaction: the event's id, the aggregate's version, the effect.
async function apply(pool, consumer, batch, message) {
  const where = `offset ${message.offset} of partition ${batch.partition}`;
  await transaction(pool, async (client) => {
    if (!(await claim(client, consumer, message, where))) return;
    await client.query(
      `insert into account_view as v (id, balance, events) values ($1, $2, 1)
       on conflict (id) do update
          set balance = v.balance + excluded.balance, events = v.events + 1`,
      [message.key.toString(), JSON.parse(message.value.toString()).amount],
    );
  });
}

// claim says whether the event is to be applied; not one that has been.
async function claim(client, consumer, message, where) {
  const id = header(message, 'id', where);
  const aggregate = [header(message, 'aggregate_type', where), message.key.toString()];
  const version = BigInt(header(message, 'aggregate_version', where)); // not Number, not a string
  // Not a caught unique violation: the transaction would be aborted. And not a select
  // before: two consumers would both find nothing.
  const inserted = await client.query(
    'insert into processed_events (consumer, event_id) values ($1, $2) on conflict do nothing',
    [consumer, id],
  );
  if (inserted.rowCount === 0) return false; // a duplicate
  const moved = await client.query(
    `insert into consumer_positions as p (consumer, aggregate_type, aggregate_id, version)
     values ($1, $2, $3, $4)
     on conflict (consumer, aggregate_type, aggregate_id) do update
        set version = excluded.version, updated_at = now()
      where p.version = excluded.version - 1`,
    [consumer, ...aggregate, version],
  );
  if (moved.rowCount === 1) return true; // the next version, or the first one seen, which need not be 1
  const { rows } = await client.query(
    `select version from consumer_positions
      where consumer = $1 and aggregate_type = $2 and aggregate_id = $3`,
    [consumer, ...aggregate],
  );
  if (version > BigInt(rows[0].version)) {
    // Thrown, not returned: processed_events must not keep the event.
    throw new VersionGap(`${aggregate.join(' ')}: version ${version} came after version ${rows[0].version}; ` +
      'find the events between them before going on');
  }
  return false; // stale: passed before
}

function header(message, name, where) {
  const value = [message.headers?.[name]].flat()[0]; // of several the first counts
  if (value == null) throw new Error(`no header ${name} at ${where}: not a record of walpost`);
  return value.toString();
}

const [command, ...numbers] = process.argv.slice(2);
const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  lock_timeout: 30_000, // for locks of a consumer that the group has thrown out
});
try {
  if (command === 'write' && numbers.length === 2) await write(pool, ...numbers.map(Number));
  else if (command === 'consume' && numbers.length === 1) await consume(pool, Number(numbers[0]));
  else throw new Error('usage: example.js write N START | consume N');
} catch (error) {
  console.error(error instanceof VersionGap ? error.message : error);
  process.exitCode = error instanceof VersionGap ? 4 : 1;
} finally {
  await pool.end();
}
