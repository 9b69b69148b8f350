package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Execer is a transaction of database/sql, or of what wraps it.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// sqlEvents is how many events one statement of WriteSQL holds: PostgreSQL takes
// 65535 parameters.
const sqlEvents = 500

// WriteSQL is Write for database/sql with any PostgreSQL driver. What can begin
// a transaction, such as a *sql.DB or a *sql.Conn, is none: ErrNoTransaction.
func (w *Writer) WriteSQL(ctx context.Context, tx Execer, events ...*Event) error {
	switch t := tx.(type) {
	case nil:
		return noTransaction("nil")
	case *sql.Tx:
		if t == nil {
			return noTransaction("a nil *sql.Tx")
		}
	case interface {
		BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
	}:
		return noTransaction(fmt.Sprintf("a %T", tx))
	}
	rows, err := w.rows(ctx, events)
	if err != nil {
		return err
	}
	for chunk := range chunks(rows) {
		for len(chunk) > 0 {
			n := min(len(chunk), sqlEvents)
			// Not every driver knows arrays.
			if _, err := tx.ExecContext(ctx, w.valuesSQL(n), w.valueArgs(chunk[:n])...); err != nil {
				return w.failed(len(rows), err)
			}
			chunk = chunk[n:]
		}
	}
	return nil
}

func (w *Writer) valuesSQL(n int) string {
	types := strings.Split(w.values, ",")
	var b strings.Builder
	b.WriteString("insert into " + w.table.Sanitize() + " (" + strings.Join(columns, ", ") + ") values ")
	for i := range n {
		for j, t := range types {
			switch {
			case j > 0:
				b.WriteString(", ")
			case i > 0:
				b.WriteString(", (")
			default:
				b.WriteString("(")
			}
			fmt.Fprintf(&b, "$%d::%s", i*len(types)+j+1, t)
		}
		b.WriteString(")")
	}
	return b.String()
}

func (w *Writer) valueArgs(rows []row) []any {
	args := make([]any, 0, len(rows)*len(columns))
	for i := range rows {
		r := &rows[i]
		var version, payload any = nil, string(r.payload)
		if r.version != nil {
			version = *r.version
		}
		if w.opt.Payload == "bytea" {
			payload = r.payload
		}
		args = append(args, r.id.String(), r.aggregateType, r.aggregateID, version, r.eventType, int64(r.schemaVersion), payload, r.occurredAt)
		for _, s := range []*string{r.tenant, r.parent, r.state, r.headers} {
			if s == nil {
				args = append(args, nil)
			} else {
				args = append(args, *s)
			}
		}
	}
	return args
}
