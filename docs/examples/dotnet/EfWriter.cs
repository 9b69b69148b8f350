using System.ComponentModel.DataAnnotations;
using System.ComponentModel.DataAnnotations.Schema;
using System.Text.Json;
using Microsoft.EntityFrameworkCore;

/// <summary>Writes events with Entity Framework Core. Consuming is as in NpgsqlConsumer.</summary>
public static class EfWriter
{
    public static async Task WriteAsync(string connectionString, int n, int start)
    {
        for (var i = start; i < start + n; i++)
        {
            // Outside of the retried block. Where the answer to a commit was lost, the next
            // try then fails at the id, instead of making the deposit again.
            var eventId = Guid.CreateVersion7();
            var number = i;
            await using var outer = new BankContext(connectionString);
            // With EnableRetryOnFailure a transaction of our own has to be in ExecuteAsync.
            await outer.Database.CreateExecutionStrategy().ExecuteAsync(async () =>
            {
                // A new context for each try: an old one still tracks what the failed one changed.
                await using var db = new BankContext(connectionString);
                await using var tx = await db.Database.BeginTransactionAsync();
                await DepositAsync(db, eventId, $"acct-{number % 7}", number);
                if (number % 10 == 9)
                {
                    await tx.RollbackAsync(); // takes the event along
                }
                else
                {
                    await tx.CommitAsync();
                }
            });
        }
    }

    /// <summary>Changes the account and writes the event, in the context's transaction.</summary>
    private static async Task DepositAsync(BankContext db, Guid eventId, string accountId, int i)
    {
        // With the lock: FindAsync reads without it, and two writers would give the same version.
        // A list, since SingleAsync makes a subquery of the statement.
        var account = (await db.Accounts
            .FromSql($"select * from account where id = {accountId} for update")
            .ToListAsync()).Single();
        account.Balance++;
        account.Version++;
        // The aggregate first. In one SaveChanges with the event, EF orders the statements.
        await db.SaveChangesAsync();

        db.OutboxEvents.Add(new OutboxEvent
        {
            EventId = eventId,
            AggregateType = "account",
            AggregateId = account.Id,
            AggregateVersion = account.Version,
            EventType = "Deposited",
            Payload = JsonSerializer.Serialize(new { amount = 1, n = i }),
            OccurredAt = DateTime.UtcNow, // of kind Utc, or Npgsql refuses it
        });
        await db.SaveChangesAsync();
    }
}

/// <summary>The service's tables.</summary>
public sealed class BankContext(string connectionString) : DbContext
{
    public DbSet<Account> Accounts => Set<Account>();
    public DbSet<OutboxEvent> OutboxEvents => Set<OutboxEvent>();

    protected override void OnConfiguring(DbContextOptionsBuilder options) =>
        options.UseNpgsql(connectionString, npgsql => npgsql.EnableRetryOnFailure());
}

[Table("account")]
public sealed class Account
{
    [Key, Column("id")] public required string Id { get; set; }
    [Column("balance")] public long Balance { get; set; }
    // No [ConcurrencyCheck] or [Timestamp]: the lock makes them superfluous.
    [Column("version")] public long Version { get; set; }
}

/// <summary>A row of the outbox. PostgreSQL fills seq and created_at: do not map them.</summary>
[Table("outbox_events")]
public sealed class OutboxEvent
{
    // None: the id is ours. EF would make its own, one per object.
    [Key, Column("event_id"), DatabaseGenerated(DatabaseGeneratedOption.None)] public Guid EventId { get; set; }
    [Column("aggregate_type")] public required string AggregateType { get; set; }
    [Column("aggregate_id")] public required string AggregateId { get; set; }
    [Column("aggregate_version")] public long AggregateVersion { get; set; }
    [Column("event_type")] public required string EventType { get; set; }
    [Column("payload", TypeName = "jsonb")] public required string Payload { get; set; }
    [Column("occurred_at")] public DateTime OccurredAt { get; set; }
}
