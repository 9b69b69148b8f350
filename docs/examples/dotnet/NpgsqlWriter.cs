using System.Text.Json;
using Npgsql;
using NpgsqlTypes;

/// <summary>Writes events with Npgsql.</summary>
public static class NpgsqlWriter
{
    public static async Task WriteAsync(NpgsqlDataSource db, int n, int start)
    {
        for (var i = start; i < start + n; i++)
        {
            // Once per event, before the first try. Not NewGuid, which is version 4.
            var eventId = Guid.CreateVersion7();
            await using var connection = await db.OpenConnectionAsync();
            // Disposed without a commit it rolls back.
            await using var tx = await connection.BeginTransactionAsync();
            await DepositAsync(connection, tx, eventId, $"acct-{i % 7}", i);
            if (i % 10 == 9)
            {
                await tx.RollbackAsync(); // takes the event along
            }
            else
            {
                await tx.CommitAsync();
            }
        }
    }

    /// <summary>Changes the account and writes the event, in the transaction.</summary>
    private static async Task DepositAsync(
        NpgsqlConnection connection, NpgsqlTransaction tx, Guid eventId, string account, int i)
    {
        // The aggregate first: the update locks its row, and its new version is the event's.
        await using var update = new NpgsqlCommand(
            "update account set balance = balance + 1, version = version + 1 where id = $1 returning version",
            connection, tx)
        {
            Parameters = { new() { Value = account } },
        };
        var version = (long?)await update.ExecuteScalarAsync()
            ?? throw new InvalidOperationException($"there is no account {account}");

        // The event last, on the same connection. Another one of the pool would commit by itself.
        await using var insert = new NpgsqlCommand(
            """
            insert into outbox_events (event_id, aggregate_type, aggregate_id,
                   aggregate_version, event_type, payload, occurred_at)
            values ($1, 'account', $2, $3, 'Deposited', $4, now())
            """, connection, tx)
        {
            Parameters =
            {
                new() { Value = eventId },
                new() { Value = account },
                new() { Value = version },
                // A string is text; the column wants jsonb.
                new() { Value = JsonSerializer.Serialize(new { amount = 1, n = i }), NpgsqlDbType = NpgsqlDbType.Jsonb },
            },
        };
        await insert.ExecuteNonQueryAsync();
    }
}
