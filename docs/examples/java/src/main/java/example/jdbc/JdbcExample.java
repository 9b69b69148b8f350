package example.jdbc;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Writes and consumes events with plain JDBC and kafka-clients. */
public final class JdbcExample {
    public static void main(String[] args) throws Exception {
        try (Connection db = connect(System.getenv("DATABASE_URL"))) {
            db.setAutoCommit(false); // every statement belongs to a transaction that we end
            switch (args.length == 0 ? "" : args[0]) {
                case "write" -> write(db, Integer.parseInt(args[1]), Integer.parseInt(args[2]));
                case "consume" -> consume(db, Integer.parseInt(args[1]));
                default -> throw new IllegalArgumentException("usage: write N START | consume N");
            }
        } catch (VersionGap gap) {
            System.err.println(gap.getMessage());
            System.exit(4);
        }
    }

    // ---- the writer

    private static void write(Connection db, int n, int start) throws SQLException {
        for (int i = start; i < start + n; i++) {
            deposit(db, "acct-" + i % 7, i);
            if (i % 10 == 9) {
                db.rollback(); // takes the event along
            } else {
                db.commit();
            }
        }
    }

    /** Changes the account and writes the event, in the transaction that db is in. */
    private static void deposit(Connection db, String account, int i) throws SQLException {
        // The aggregate first: the update locks its row, and its new version is the event's.
        long version;
        try (PreparedStatement update = db.prepareStatement(
                "update account set balance = balance + 1, version = version + 1 where id = ? returning version")) {
            update.setString(1, account);
            ResultSet row = update.executeQuery();
            row.next();
            version = row.getLong(1);
        }
        // The event last, on the same connection.
        try (PreparedStatement insert = db.prepareStatement("""
                insert into outbox_events
                  (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, occurred_at)
                values (?, 'account', ?, ?, 'Deposited', ?::jsonb, now())""")) {
            insert.setObject(1, uuid7());
            insert.setString(2, account);
            insert.setLong(3, version);
            insert.setString(4, "{\"amount\": 1, \"n\": " + i + "}");
            insert.executeUpdate();
        }
    }

    private static final SecureRandom RANDOM = new SecureRandom();

    /** A UUID of version 7: the time in milliseconds, then random bits. */
    private static UUID uuid7() {
        long time = System.currentTimeMillis() << 16 | 0x7000 | RANDOM.nextInt(0x1000);
        long random = RANDOM.nextLong() & 0x3fff_ffff_ffff_ffffL | 0x8000_0000_0000_0000L;
        return new UUID(time, random);
    }

    // ---- the consumer

    private static final Duration IDLE = Duration.ofSeconds(10);

    private static void consume(Connection db, int n) throws SQLException {
        String name = System.getenv("CONSUMER");
        int crashAfter = Integer.parseInt(System.getenv().getOrDefault("CRASH_AFTER", "0"));
        Map<String, Object> config = Map.of(
                "bootstrap.servers", System.getenv("KAFKA_BROKERS"),
                "group.id", name,
                "auto.offset.reset", "earliest",
                "enable.auto.commit", false, // it would commit what is not done yet
                "key.deserializer", StringDeserializer.class,
                "value.deserializer", ByteArrayDeserializer.class);
        try (KafkaConsumer<String, byte[]> kafka = new KafkaConsumer<>(config)) {
            kafka.subscribe(List.of(System.getenv("TOPIC")));
            Instant last = Instant.now();
            for (int seen = 0; seen < n && Instant.now().isBefore(last.plus(IDLE)); ) {
                ConsumerRecords<String, byte[]> records = kafka.poll(Duration.ofSeconds(1));
                for (ConsumerRecord<String, byte[]> record : records) {
                    process(db, name, record);
                    last = Instant.now();
                    if (++seen == crashAfter) {
                        Runtime.getRuntime().halt(42); // for the test of what a crash does
                    }
                    commitOffset(kafka, record);
                    if (seen == n) {
                        break;
                    }
                }
            }
        }
    }

    /** Only now: whatever happened before this, the record comes again. */
    private static void commitOffset(KafkaConsumer<?, ?> kafka, ConsumerRecord<?, ?> record) {
        try {
            kafka.commitSync(Map.of(new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1)));
        } catch (CommitFailedException | RebalanceInProgressException e) {
            // The partition goes to somebody else, who finds the event in processed_events.
        }
    }

    /** One transaction: the event's id, the aggregate's version, the effect. */
    private static void process(Connection db, String consumer, ConsumerRecord<String, byte[]> record)
            throws SQLException {
        try {
            if (claim(db, consumer, record)) {
                apply(db, record);
            }
            db.commit();
        } catch (SQLException | RuntimeException e) {
            db.rollback();
            throw e;
        }
    }

    /** Says whether the event is to be applied; false for one that has been. */
    private static boolean claim(Connection db, String consumer, ConsumerRecord<String, byte[]> record)
            throws SQLException {
        UUID id = UUID.fromString(header(record, "id"));
        String type = header(record, "aggregate_type");
        long version = Long.parseLong(header(record, "aggregate_version"));
        try (PreparedStatement insert = db.prepareStatement(
                "insert into processed_events (consumer, event_id) values (?, ?) on conflict do nothing")) {
            insert.setString(1, consumer);
            insert.setObject(2, id);
            if (insert.executeUpdate() == 0) {
                return false; // a duplicate
            }
        }
        try (PreparedStatement move = db.prepareStatement("""
                insert into consumer_positions as p (consumer, aggregate_type, aggregate_id, version)
                values (?, ?, ?, ?)
                on conflict (consumer, aggregate_type, aggregate_id) do update
                   set version = excluded.version, updated_at = now()
                 where p.version = excluded.version - 1""")) {
            move.setString(1, consumer);
            move.setString(2, type);
            move.setString(3, record.key());
            move.setLong(4, version);
            if (move.executeUpdate() == 1) {
                return true; // the next version, or the first one seen
            }
        }
        try (PreparedStatement select = db.prepareStatement("""
                select version from consumer_positions
                 where consumer = ? and aggregate_type = ? and aggregate_id = ?""")) {
            select.setString(1, consumer);
            select.setString(2, type);
            select.setString(3, record.key());
            ResultSet row = select.executeQuery();
            row.next();
            if (version > row.getLong(1)) {
                throw new VersionGap(type + " " + record.key() + ": version " + version + " came after version "
                        + row.getLong(1) + "; find the events between them before going on");
            }
            return false; // stale: passed before
        }
    }

    private static final Pattern AMOUNT = Pattern.compile("\"amount\"\\s*:\\s*(\\d+)");

    /** The effect. */
    private static void apply(Connection db, ConsumerRecord<String, byte[]> record) throws SQLException {
        // A service takes its JSON library here.
        Matcher payload = AMOUNT.matcher(new String(record.value(), StandardCharsets.UTF_8));
        if (!payload.find()) {
            throw new IllegalArgumentException("no amount in the event at offset " + record.offset());
        }
        try (PreparedStatement insert = db.prepareStatement("""
                insert into account_view as v (id, balance, events) values (?, ?, 1)
                on conflict (id) do update
                   set balance = v.balance + excluded.balance, events = v.events + 1""")) {
            insert.setString(1, record.key());
            insert.setLong(2, Long.parseLong(payload.group(1)));
            insert.executeUpdate();
        }
    }

    private static String header(ConsumerRecord<?, ?> record, String name) {
        // Of several the first counts; lastHeader would give the last.
        Iterator<Header> headers = record.headers().headers(name).iterator();
        byte[] value = headers.hasNext() ? headers.next().value() : null;
        if (value == null) {
            throw new IllegalArgumentException("no header " + name + " at offset " + record.offset()
                    + " of partition " + record.partition() + ": not a record of walpost");
        }
        return new String(value, StandardCharsets.UTF_8);
    }

    private static final class VersionGap extends RuntimeException {
        VersionGap(String message) {
            super(message);
        }
    }

    // ---- the connection

    /** JDBC wants postgres://user:password@host/db?options in another order. */
    private static Connection connect(String url) throws SQLException {
        URI uri = URI.create(url);
        String[] user = uri.getUserInfo().split(":", 2);
        return DriverManager.getConnection(
                "jdbc:postgresql://" + uri.getRawAuthority().replaceFirst("^.*@", "") + uri.getRawPath() + "?" + uri.getRawQuery(),
                user[0], user.length > 1 ? user[1] : null);
    }
}
