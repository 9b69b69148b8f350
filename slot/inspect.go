package slot

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/walpost/walpost/internal/pg"
)

// oldestVersion is the server_version_num of the oldest server supported.
const oldestVersion = 140000

// pg_current_wal_lsn is refused by a standby; case evaluates one branch only.
// The setting's unit is MB.
const serverSQL = `
select current_setting('server_version_num')::int,
       pg_is_in_recovery(),
       (case when pg_is_in_recovery() then coalesce(pg_last_wal_replay_lsn(), '0/0') else pg_current_wal_lsn() end)::text,
       clock_timestamp(),
       (select case when setting::bigint >= 0 then setting::bigint * 1048576 end
          from pg_settings where name = 'max_slot_wal_keep_size'),
       (select case when current_setting('archive_mode') <> 'off'
                    then last_failed_time is not null and (last_archived_time is null or last_failed_time > last_archived_time) end
          from pg_stat_archiver)`

// A walsender that streams waits for its client in WalSenderWriteData; in
// ClientWrite it sends its last words.
// invalidation_reason, failover and synced exist from 17 on.
const slotSQL14 = `
select s.plugin, s.slot_type, s.database, s.temporary, s.two_phase, s.active, s.active_pid,
       a.application_name, host(a.client_addr), coalesce(a.wait_event = 'ClientWrite', false),
       s.restart_lsn::text, s.confirmed_flush_lsn::text, s.wal_status, s.safe_wal_size,
       null::text, null::bool, null::bool
  from pg_replication_slots s left join pg_stat_activity a on a.pid = s.active_pid
 where s.slot_name = $1`

const slotSQL17 = `
select s.plugin, s.slot_type, s.database, s.temporary, s.two_phase, s.active, s.active_pid,
       a.application_name, host(a.client_addr), coalesce(a.wait_event = 'ClientWrite', false),
       s.restart_lsn::text, s.confirmed_flush_lsn::text, s.wal_status, s.safe_wal_size,
       s.invalidation_reason, s.failover, s.synced
  from pg_replication_slots s left join pg_stat_activity a on a.pid = s.active_pid
 where s.slot_name = $1`

const otherSlotsSQL = `
select max(pg_wal_lsn_diff($2::pg_lsn, restart_lsn))::bigint from pg_replication_slots where slot_name <> $1`

const systemIDSQL = `select system_identifier::text from pg_control_system()`

// Every transaction with an xid, in any database, holds back the point from
// which a slot must be able to decode again.
const pinnerSQL = `
select pid, application, extract(epoch from age)::float8, gid from (
  select pid, coalesce(application_name, '') as application, clock_timestamp() - xact_start as age, '' as gid
    from pg_stat_activity
   where backend_xid is not null and xact_start is not null and pid <> pg_backend_pid()
   union all
  select 0, '', clock_timestamp() - prepared, gid from pg_prepared_xacts
) holders order by age desc limit 1`

// pinnerAge is how old a transaction must be to be worth a mention.
const pinnerAge = 10 * time.Second

// Inspect asks PostgreSQL about a slot and what surrounds it. A slot that does
// not exist is no error: Info.Exists tells.
func Inspect(ctx context.Context, conn *pgx.Conn, name string) (*Info, error) {
	info := &Info{Name: name}
	var current string
	err := conn.QueryRow(ctx, serverSQL).Scan(&info.ServerVersion, &info.InRecovery, &current,
		&info.ServerTime, &info.LimitBytes, &info.ArchiverFailed)
	if err != nil {
		return nil, describe("look at the server", err)
	}
	if info.CurrentLSN, err = pglogrepl.ParseLSN(current); err != nil {
		return nil, describe("look at the server", err)
	}
	if err := inspectSlot(ctx, conn, info); err != nil {
		return nil, describe("look at slot "+quote(name), err)
	}
	if err := conn.QueryRow(ctx, otherSlotsSQL, name, current).Scan(&info.OtherSlotsMax); err != nil {
		return nil, describe("look at the other slots", err)
	}
	if info.OtherSlotsMax != nil {
		info.OtherSlotsMax = new(max(*info.OtherSlotsMax, 0))
	}
	// The function is public unless somebody took that away; the replication
	// connection tells the same.
	if err := conn.QueryRow(ctx, systemIDSQL).Scan(&info.SystemID); err != nil && pg.SQLState(err) != "42501" {
		return nil, describe("read the system identifier", err)
	}
	if info.RestartPinner, err = oldestTransaction(ctx, conn, pinnerAge); err != nil {
		return nil, describe("look at open transactions", err)
	}
	return info, nil
}

func inspectSlot(ctx context.Context, conn *pgx.Conn, info *Info) error {
	query := slotSQL14
	if info.ServerVersion >= 170000 {
		query = slotSQL17
	}
	var plugin, database, application, address, restart, confirmed, status, cause *string
	err := conn.QueryRow(ctx, query, info.Name).Scan(&plugin, &info.SlotType, &database, &info.Temporary, &info.TwoPhase,
		&info.Active, &info.ActivePID, &application, &address, &info.HolderEnding, &restart, &confirmed, &status, &info.SafeWALBytes,
		&cause, &info.Failover, &info.Synced)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	info.Exists = true
	info.Plugin, info.Database = text(plugin), text(database)
	info.HolderApplication, info.HolderAddress = text(application), text(address)
	info.WALStatus, info.InvalidationCause = text(status), text(cause)
	if info.RestartLSN, info.RetainedBytes, err = distance(restart, info.CurrentLSN); err != nil {
		return err
	}
	info.ConfirmedFlushLSN, info.LagBytes, err = distance(confirmed, info.CurrentLSN)
	return err
}

// distance parses an LSN and says how far it is behind current. The slot was
// read after current and may have moved past it since.
func distance(lsn *string, current pglogrepl.LSN) (*pglogrepl.LSN, *int64, error) {
	if lsn == nil {
		return nil, nil, nil
	}
	at, err := pglogrepl.ParseLSN(*lsn)
	if err != nil {
		return nil, nil, err
	}
	return &at, new(max(int64(current)-int64(at), 0)), nil
}

// oldestTransaction is the oldest visible transaction with an xid, nil when
// there is none as old as least.
func oldestTransaction(ctx context.Context, conn *pgx.Conn, least time.Duration) (*Pinner, error) {
	var p Pinner
	var seconds float64
	err := conn.QueryRow(ctx, pinnerSQL).Scan(&p.PID, &p.Application, &seconds, &p.Prepared)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.Age = time.Duration(seconds * float64(time.Second))
	if p.Age < least {
		return nil, nil
	}
	return &p, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
