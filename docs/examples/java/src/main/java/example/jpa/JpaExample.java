package example.jpa;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.EntityManager;
import jakarta.persistence.Id;
import jakarta.persistence.LockModeType;
import jakarta.persistence.Table;
import java.net.URI;
import java.security.SecureRandom;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.UUID;
import org.hibernate.annotations.ColumnTransformer;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.transaction.annotation.Transactional;

/** Writes events with JPA (Hibernate, Spring Boot). JdbcExample has the consumer. */
@SpringBootApplication
public class JpaExample {

    @Entity
    @Table(name = "account")
    public static class Account {
        @Id
        private String id;
        private long balance;
        private long version; // counts the account's events, one by one

        void deposit(long amount) {
            balance += amount;
            version++;
        }
    }

    @Entity
    @Table(name = "outbox_events")
    public static class OutboxEvent {
        @Id
        @Column(name = "event_id")
        private UUID eventId;
        @Column(name = "aggregate_type")
        private String aggregateType;
        @Column(name = "aggregate_id")
        private String aggregateId;
        @Column(name = "aggregate_version")
        private Long aggregateVersion;
        @Column(name = "event_type")
        private String eventType;
        @ColumnTransformer(write = "?::jsonb")
        private String payload;
        @Column(name = "occurred_at")
        private OffsetDateTime occurredAt;

        protected OutboxEvent() {}

        OutboxEvent(Account account, String eventType, String payload) {
            this.eventId = uuid7();
            this.aggregateType = "account";
            this.aggregateId = account.id;
            this.aggregateVersion = account.version;
            this.eventType = eventType;
            this.payload = payload;
            this.occurredAt = OffsetDateTime.now();
        }
    }

    /** A service. Its transaction holds the change and the event. */
    public static class Accounts {
        private final EntityManager entities;

        public Accounts(EntityManager entities) {
            this.entities = entities;
        }

        @Transactional
        public void deposit(String id, int i) {
            // The lock gives each event a version of its own, also with many writers.
            Account account = entities.find(Account.class, id, LockModeType.PESSIMISTIC_WRITE);
            account.deposit(1);
            // Hibernate sends inserts before updates. flush() sends the aggregate's change now,
            // so the event is written last, when the row is locked.
            entities.flush();
            // persist, not save of a repository: that would select the event first, since it has an id.
            entities.persist(new OutboxEvent(account, "Deposited", "{\"amount\": 1, \"n\": " + i + "}"));
            if (i % 10 == 9) {
                entities.flush();
                throw new Refused(); // the transaction is rolled back, and takes the event along
            }
        }
    }

    /** Unchecked, so that Spring rolls back: for a checked exception it would commit. */
    static class Refused extends RuntimeException {}

    private static final SecureRandom RANDOM = new SecureRandom();

    /** A UUID of version 7: the time in milliseconds, then random bits. */
    private static UUID uuid7() {
        long time = System.currentTimeMillis() << 16 | 0x7000 | RANDOM.nextInt(0x1000);
        long random = RANDOM.nextLong() & 0x3fff_ffff_ffff_ffffL | 0x8000_0000_0000_0000L;
        return new UUID(time, random);
    }

    @Bean
    Accounts accounts(EntityManager entities) {
        return new Accounts(entities);
    }

    public static void main(String[] args) {
        if (args.length != 3 || !args[0].equals("write")) {
            throw new IllegalArgumentException("usage: write N START");
        }
        int start = Integer.parseInt(args[2]);
        int end = start + Integer.parseInt(args[1]);
        SpringApplication app = new SpringApplication(JpaExample.class);
        app.setDefaultProperties(settings(URI.create(System.getenv("DATABASE_URL"))));
        try (var context = app.run()) {
            Accounts accounts = context.getBean(Accounts.class);
            for (int i = start; i < end; i++) {
                try {
                    accounts.deposit("acct-" + i % 7, i);
                } catch (Refused e) {
                    // as wanted
                }
            }
        }
    }

    /** What application.yaml says in a service. */
    private static Map<String, Object> settings(URI uri) {
        String[] user = uri.getUserInfo().split(":", 2);
        return Map.of(
                "spring.datasource.url",
                "jdbc:postgresql://" + uri.getRawAuthority().replaceFirst("^.*@", "") + uri.getRawPath() + "?" + uri.getRawQuery(),
                "spring.datasource.username", user[0],
                "spring.datasource.password", user.length > 1 ? user[1] : "",
                "spring.jpa.hibernate.ddl-auto", "none", // walpost init makes the outbox
                "spring.main.banner-mode", "off",
                "logging.level.root", "warn");
    }
}
