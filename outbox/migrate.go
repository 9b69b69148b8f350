package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// State says what became of an object.
type State string

// What Migrate did, or would do in a dry run.
const (
	Created   State = "created"   // it was not there
	Upgraded  State = "upgraded"  // it was of an older version
	Adopted   State = "adopted"   // it was there, made by other means, and fits
	Unchanged State = "unchanged" // it was there, of this version
)

// MigrateOptions are SchemaOptions and how to go about it.
type MigrateOptions struct {
	SchemaOptions
	// DryRun changes nothing and takes no lock that others wait for.
	DryRun bool
}

// MigrateStep is one object of a Report.
type MigrateStep struct {
	Object     string
	State      State
	Version    int      // that it has afterwards
	Statements []string // that were run, or would be
}

// MigrateReport says what Migrate found and did.
type MigrateReport struct {
	Steps  []MigrateStep
	DryRun bool
}

// Changed says whether there was something to do.
func (r MigrateReport) Changed() bool {
	return slices.ContainsFunc(r.Steps, func(s MigrateStep) bool { return s.State != Unchanged })
}

const (
	// The number is this package's: those who migrate at the same time wait for
	// each other. A lock of the transaction also holds behind a pooler.
	migrateLock = `select pg_advisory_xact_lock(7238917643520194)`
	lockTimeout = `select set_config('lock_timeout', '5s', true)`

	versionTable = `
create table if not exists walpost.outbox_schema (
  object     text primary key,
  version    integer not null,
  applied_at timestamptz not null default now(),
  applied_by text not null default session_user
)`
	createSchema   = `create schema if not exists walpost`
	schemaThere    = `select exists (select from pg_namespace where nspname = 'walpost')`
	versionThere   = `select to_regclass('walpost.outbox_schema') is not null`
	versionOf      = `select coalesce((select version from walpost.outbox_schema where object = $1), 0)`
	setVersion     = `insert into walpost.outbox_schema (object, version) values ($1, $2) on conflict (object) do update set version = excluded.version, applied_at = now(), applied_by = session_user`
	firstSchema    = `select coalesce(current_schema(), '')`
	tableThere     = `select to_regclass($1) is not null`
	functionThere  = `select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $1 and p.proname = $2 and p.pronargs = 0)`
	columnsOfTable = `select array_agg(attname::text) from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`
)

// Migrate makes what is missing, in one transaction: all of it or nothing. It
// can run at every start of every instance: they wait for each other, and all
// but the first find nothing to do. A table that is there already, because
// "walpost init" or another tool made it, is taken over as it is if it has the
// columns, and never altered.
func Migrate(ctx context.Context, db Beginner, o MigrateOptions) (MigrateReport, error) {
	report := MigrateReport{DryRun: o.DryRun}
	objects, err := o.objects()
	if err != nil {
		return report, err
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return report, fmt.Errorf("migrate: begin: %w", err)
	}
	defer rollback(ctx, tx)
	m := &migration{tx: tx, dry: o.DryRun}
	if err := m.prepare(ctx); err != nil {
		return report, migrateError("prepare", err)
	}
	for _, b := range objects {
		step, err := m.object(ctx, b)
		if err != nil {
			return report, migrateError(name(b.table), err)
		}
		report.Steps = append(report.Steps, step)
	}
	if o.DryRun {
		return report, nil
	}
	if err := tx.Commit(ctx); err != nil {
		return report, migrateError("commit", err)
	}
	return report, nil
}

type migration struct {
	tx       pgx.Tx
	dry      bool
	schema   string // in which tables without a schema are made
	versions bool   // the version table is there
}

func (m *migration) prepare(ctx context.Context) error {
	if !m.dry {
		if _, err := m.tx.Exec(ctx, migrateLock); err != nil {
			return err
		}
		if _, err := m.tx.Exec(ctx, lockTimeout); err != nil {
			return err
		}
		var there bool
		if err := m.tx.QueryRow(ctx, schemaThere).Scan(&there); err != nil {
			return err
		}
		// "if not exists" asks for the right to create even when it exists.
		if !there {
			if _, err := m.tx.Exec(ctx, createSchema); err != nil {
				return err
			}
		}
	}
	if err := m.tx.QueryRow(ctx, versionThere).Scan(&m.versions); err != nil {
		return err
	}
	if !m.versions && !m.dry {
		if _, err := m.tx.Exec(ctx, versionTable); err != nil {
			return err
		}
		m.versions = true
	}
	return m.tx.QueryRow(ctx, firstSchema).Scan(&m.schema)
}

func (m *migration) object(ctx context.Context, b object) (MigrateStep, error) {
	if len(b.table) == 1 {
		if m.schema == "" {
			return MigrateStep{}, &Error{Text: "the search path names no schema that exists", Way: "name the tables with their schema, or create it"}
		}
		b.table = pgx.Identifier{m.schema, b.table[0]}
	}
	step := MigrateStep{Object: name(b.table), State: Unchanged, Version: len(b.steps)}
	version := 0
	if m.versions {
		if err := m.tx.QueryRow(ctx, versionOf, step.Object).Scan(&version); err != nil {
			return step, err
		}
	}
	if version > len(b.steps) {
		return step, &Error{
			Text: fmt.Sprintf("version %d is newer than this package, which knows %d", version, len(b.steps)),
			Way:  "update the module, or let the newer service migrate",
		}
	}
	there, err := m.there(ctx, b)
	switch {
	case err != nil:
		return step, err
	case version > 0 && !there:
		step.State, version = Created, 0 // somebody dropped it
	case version == 0 && there:
		// What other means make is the first version.
		step.State, version = Adopted, 1
		if err := m.fits(ctx, b); err != nil {
			return step, err
		}
	case version == 0:
		step.State = Created
	case version < len(b.steps):
		step.State = Upgraded
	}
	for _, statements := range b.steps[version:] {
		for _, s := range statements {
			if b.part == Guard && s == "create schema walpost" {
				if m.dry {
					s = createSchema
				} else {
					continue // prepare did
				}
			}
			step.Statements = append(step.Statements, s)
		}
	}
	if m.dry || step.State == Unchanged {
		return step, nil
	}
	for _, s := range step.Statements {
		if _, err := m.tx.Exec(ctx, s); err != nil {
			return step, err
		}
	}
	_, err = m.tx.Exec(ctx, setVersion, step.Object, step.Version)
	return step, err
}

func (m *migration) there(ctx context.Context, b object) (there bool, err error) {
	if b.part == Guard {
		err = m.tx.QueryRow(ctx, functionThere, b.table[0], b.table[1]).Scan(&there)
	} else {
		err = m.tx.QueryRow(ctx, tableThere, b.table.Sanitize()).Scan(&there)
	}
	return there, err
}

// fits refuses a table that Write could not write to.
func (m *migration) fits(ctx context.Context, b object) error {
	if len(b.needs) == 0 {
		return nil
	}
	var have []string
	if err := m.tx.QueryRow(ctx, columnsOfTable, b.table.Sanitize()).Scan(&have); err != nil {
		return err
	}
	var lacks []string
	for _, c := range columns {
		if !slices.Contains(have, c) {
			lacks = append(lacks, c)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return &Error{
		Text: "the table is there, but has no column " + strings.Join(lacks, ", "),
		Way:  "choose another name for the outbox, or add the columns as outbox.SQL has them",
	}
}

func name(table pgx.Identifier) string { return strings.Join(table, ".") }

func migrateError(doing string, err error) error {
	e := &Error{Text: "migrate: " + doing, Err: err}
	switch sqlState(err) {
	case "42501":
		e.Way = "let somebody who may create in the database run what outbox.SQL gives; Migrate takes it over"
	case "55P03":
		e.Way = "another session holds a lock; nothing was changed, so run it again"
	}
	if h, ok := err.(*Error); ok {
		e.Way = h.Way
	}
	return e
}
