using Npgsql;

// Text to read: these files are neither compiled nor run by the repository's tests.
var connectionString = ConnectionString(Environment.GetEnvironmentVariable("DATABASE_URL")!);
try
{
    switch (args)
    {
        case ["write", var n, var start]:
        {
            await using var db = NpgsqlDataSource.Create(connectionString);
            await NpgsqlWriter.WriteAsync(db, int.Parse(n), int.Parse(start));
            return 0;
        }
        case ["write-ef", var n, var start]:
            await EfWriter.WriteAsync(connectionString, int.Parse(n), int.Parse(start));
            return 0;
        case ["consume", var n]:
        {
            await using var db = NpgsqlDataSource.Create(connectionString);
            await NpgsqlConsumer.ConsumeAsync(db, int.Parse(n));
            return 0;
        }
        default:
            Console.Error.WriteLine("usage: write N START | write-ef N START | consume N");
            return 1;
    }
}
catch (VersionGapException gap)
{
    Console.Error.WriteLine(gap.Message);
    return 4;
}

// Npgsql takes key=value pairs and no URL.
static string ConnectionString(string url)
{
    var uri = new Uri(url);
    var user = uri.UserInfo.Split(':', 2);
    return new NpgsqlConnectionStringBuilder
    {
        Host = uri.Host,
        Port = uri.IsDefaultPort ? 5432 : uri.Port,
        Database = uri.AbsolutePath.TrimStart('/'),
        Username = Uri.UnescapeDataString(user[0]),
        Password = user.Length > 1 ? Uri.UnescapeDataString(user[1]) : null,
        SslMode = SslMode.Disable,
        Options = "-c lock_timeout=30s", // for locks of a consumer that the group has thrown out
    }.ConnectionString;
}
