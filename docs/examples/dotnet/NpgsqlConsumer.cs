using System.Text;
using System.Text.Json;
using Confluent.Kafka;
using Npgsql;

/// <summary>An event came whose predecessor has not been seen.</summary>
public sealed class VersionGapException(string message) : Exception(message);

/// <summary>Consumes events with Confluent.Kafka and Npgsql.</summary>
public static class NpgsqlConsumer
{
    private static readonly TimeSpan Idle = TimeSpan.FromSeconds(10);

    public static async Task ConsumeAsync(NpgsqlDataSource db, int n)
    {
        var name = Environment.GetEnvironmentVariable("CONSUMER")!;
        var crashAfter = int.Parse(Environment.GetEnvironmentVariable("CRASH_AFTER") ?? "0");
        var config = new ConsumerConfig
        {
            BootstrapServers = Environment.GetEnvironmentVariable("KAFKA_BROKERS"),
            GroupId = name,
            AutoOffsetReset = AutoOffsetReset.Earliest,
            EnableAutoCommit = false, // it would commit what is not done yet
        };
        using var kafka = new ConsumerBuilder<string, byte[]>(config)
            // With a handler a partition is given away inside Consume, and not in the
            // middle of a record.
            .SetPartitionsRevokedHandler((_, _) => { })
            .Build();
        kafka.Subscribe(Environment.GetEnvironmentVariable("TOPIC"));
        try
        {
            for (var seen = 1; seen <= n; seen++)
            {
                var record = kafka.Consume(Idle);
                if (record is null)
                {
                    return;
                }
                // Whatever is thrown here ends the loop. Do not log it and go on: the next
                // record's offset would pass this one.
                await ProcessAsync(db, name, record);
                if (seen == crashAfter)
                {
                    Environment.Exit(42); // for the test of what a crash does
                }
                CommitOffset(kafka, record);
            }
        }
        finally
        {
            kafka.Close();
        }
    }

    /// <summary>Only after the transaction: whatever happened before, the record comes again.</summary>
    private static void CommitOffset(IConsumer<string, byte[]> kafka, ConsumeResult<string, byte[]> record)
    {
        try
        {
            kafka.Commit(record);
        }
        catch (KafkaException e) when (e.Error.Code
            is ErrorCode.IllegalGeneration or ErrorCode.RebalanceInProgress or ErrorCode.UnknownMemberId)
        {
            // The partition is lost. Its next owner finds the event in processed_events.
        }
    }

    /// <summary>One transaction: the event's id, the aggregate's version, the effect.</summary>
    private static async Task ProcessAsync(NpgsqlDataSource db, string consumer, ConsumeResult<string, byte[]> record)
    {
        await using var connection = await db.OpenConnectionAsync();
        await using var tx = await connection.BeginTransactionAsync(); // rolls back if it is not committed
        if (await ClaimAsync(connection, consumer, record))
        {
            await ApplyAsync(connection, record);
        }
        await tx.CommitAsync();
    }

    /// <summary>Says whether the event is to be applied; not one that has been.</summary>
    private static async Task<bool> ClaimAsync(
        NpgsqlConnection connection, string consumer, ConsumeResult<string, byte[]> record)
    {
        var id = Guid.Parse(Header(record, "id"));
        var type = Header(record, "aggregate_type");
        var version = long.Parse(Header(record, "aggregate_version")); // text, not eight bytes

        // Not a caught unique violation: the transaction would be aborted. And not a select
        // before: two consumers would both find nothing.
        await using var insert = Command(connection,
            "insert into processed_events (consumer, event_id) values ($1, $2) on conflict do nothing",
            consumer, id);
        if (await insert.ExecuteNonQueryAsync() == 0)
        {
            return false; // a duplicate
        }

        await using var move = Command(connection,
            """
            insert into consumer_positions as p (consumer, aggregate_type, aggregate_id, version)
            values ($1, $2, $3, $4)
            on conflict (consumer, aggregate_type, aggregate_id) do update
               set version = excluded.version, updated_at = now()
             where p.version = excluded.version - 1
            """, consumer, type, record.Message.Key, version);
        if (await move.ExecuteNonQueryAsync() == 1)
        {
            return true; // the next version, or the first one seen, which need not be 1
        }

        await using var select = Command(connection,
            """
            select version from consumer_positions
             where consumer = $1 and aggregate_type = $2 and aggregate_id = $3
            """, consumer, type, record.Message.Key);
        var seen = (long)(await select.ExecuteScalarAsync())!;
        if (version > seen)
        {
            // Thrown, not returned: processed_events must not keep the event.
            throw new VersionGapException(
                $"{type} {record.Message.Key}: version {version} came after version {seen}; "
                + "find the events between them before going on");
        }
        return false; // stale: passed before
    }

    /// <summary>The effect.</summary>
    private static async Task ApplyAsync(NpgsqlConnection connection, ConsumeResult<string, byte[]> record)
    {
        using var payload = JsonDocument.Parse(record.Message.Value);
        await using var upsert = Command(connection,
            """
            insert into account_view as v (id, balance, events) values ($1, $2, 1)
            on conflict (id) do update
               set balance = v.balance + excluded.balance, events = v.events + 1
            """, record.Message.Key, payload.RootElement.GetProperty("amount").GetInt64());
        await upsert.ExecuteNonQueryAsync();
    }

    // A command of Npgsql is in the transaction that its connection is in.
    private static NpgsqlCommand Command(NpgsqlConnection connection, string sql, params object[] values)
    {
        var command = new NpgsqlCommand(sql, connection);
        foreach (var value in values)
        {
            command.Parameters.Add(new NpgsqlParameter { Value = value });
        }
        return command;
    }

    private static string Header(ConsumeResult<string, byte[]> record, string name)
    {
        // Of several the first counts; TryGetLastBytes takes the last.
        var header = record.Message.Headers.FirstOrDefault(h => h.Key == name);
        return header?.GetValueBytes() is { } value
            ? Encoding.UTF8.GetString(value)
            : throw new InvalidDataException($"no header {name} at {record.TopicPartitionOffset}: not a record of walpost");
    }
}
