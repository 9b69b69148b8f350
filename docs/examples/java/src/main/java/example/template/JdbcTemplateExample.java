package example.template;

import java.net.URI;
import java.security.SecureRandom;
import java.util.UUID;
import javax.sql.DataSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;

/** Writes events with Spring's JdbcTemplate. JdbcExample has the consumer. */
public class JdbcTemplateExample {

    /** A service. Its transaction holds the change and the event. */
    public static class Accounts {
        private final JdbcTemplate jdbc;

        public Accounts(JdbcTemplate jdbc) {
            this.jdbc = jdbc;
        }

        @Transactional
        public void deposit(String account, int i) {
            // The aggregate first: the update locks its row, and its new version is the event's.
            Long version = jdbc.queryForObject(
                    "update account set balance = balance + 1, version = version + 1 where id = ? returning version",
                    Long.class, account);
            // The event last. JdbcTemplate takes the transaction's connection by itself.
            // No @TransactionalEventListener(AFTER_COMMIT): a crash in between would lose the event.
            jdbc.update("""
                    insert into outbox_events
                      (event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, occurred_at)
                    values (?, 'account', ?, ?, 'Deposited', ?::jsonb, now())""",
                    uuid7(), account, version, "{\"amount\": 1, \"n\": " + i + "}");
            if (i % 10 == 9) {
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

    // ---- what Spring Boot and application.yaml do in a service

    @Configuration
    @EnableTransactionManagement
    public static class Config {
        @Bean
        DataSource dataSource() {
            URI uri = URI.create(System.getenv("DATABASE_URL"));
            String[] user = uri.getUserInfo().split(":", 2);
            DriverManagerDataSource source = new DriverManagerDataSource(
                    "jdbc:postgresql://" + uri.getRawAuthority().replaceFirst("^.*@", "") + uri.getRawPath() + "?" + uri.getRawQuery());
            source.setUsername(user[0]);
            source.setPassword(user.length > 1 ? user[1] : null);
            return source;
        }

        @Bean
        PlatformTransactionManager transactionManager(DataSource source) {
            return new JdbcTransactionManager(source);
        }

        @Bean
        Accounts accounts(DataSource source) {
            return new Accounts(new JdbcTemplate(source));
        }
    }

    public static void main(String[] args) {
        if (args.length != 3 || !args[0].equals("write")) {
            throw new IllegalArgumentException("usage: write N START");
        }
        int start = Integer.parseInt(args[2]);
        int end = start + Integer.parseInt(args[1]);
        try (var context = new AnnotationConfigApplicationContext(Config.class)) {
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
}
