package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/slot"
)

// statusReport is the JSON of status. Fields are added and never renamed; null
// is what is not known.
type statusReport struct {
	At          time.Time         `json:"at"`     // by PostgreSQL's clock
	Source      string            `json:"source"` // instance, or postgres when none answered
	Healthy     bool              `json:"healthy"`
	Problems    []reportProblem   `json:"problems"`
	Relay       *liveStatus       `json:"relay"`
	Slot        reportSlot        `json:"slot"`
	Publication reportPublication `json:"publication"`
	Server      reportServer      `json:"server"`
}

type reportProblem struct {
	Text string `json:"text"`
	Hint string `json:"hint"`
}

type reportSlot struct {
	Name              string        `json:"name"`
	Exists            bool          `json:"exists"`
	Active            bool          `json:"active"`
	ActivePID         *int32        `json:"active_pid"`
	HolderApplication *string       `json:"holder_application"`
	HolderAddress     *string       `json:"holder_address"`
	WALStatus         *string       `json:"wal_status"`
	InvalidationCause *string       `json:"invalidation_cause"`
	RestartLSN        *string       `json:"restart_lsn"`
	ConfirmedLSN      *string       `json:"confirmed_lsn"`
	LagBytes          *int64        `json:"lag_bytes"`
	LagSeconds        *float64      `json:"lag_seconds"`
	RetainedBytes     *int64        `json:"retained_bytes"`
	LimitBytes        *int64        `json:"limit_bytes"` // null when there is none
	SafeWALBytes      *int64        `json:"safe_wal_bytes"`
	Failover          *bool         `json:"failover"`
	RestartPinner     *reportPinner `json:"restart_pinner"`
	OtherSlotsMax     *int64        `json:"other_slots_max_retained_bytes"`
}

type reportPinner struct {
	PID         *int32  `json:"pid"`
	Application *string `json:"application"`
	Prepared    *string `json:"prepared"`
	AgeSeconds  float64 `json:"age_seconds"`
}

type reportPublication struct {
	Name   string   `json:"name"`
	OK     bool     `json:"ok"`
	Tables []string `json:"tables"`
}

type reportServer struct {
	Version    int     `json:"version"` // server_version_num
	InRecovery bool    `json:"in_recovery"`
	CurrentLSN string  `json:"current_lsn"`
	SystemID   *string `json:"system_id"`
}

func (s *statusView) report() statusReport {
	i := s.info
	r := statusReport{
		At: s.at, Source: "postgres", Healthy: true, Problems: []reportProblem{}, Relay: s.live,
		Slot: reportSlot{
			Name: i.Name, Exists: i.Exists, Active: i.Active, ActivePID: i.ActivePID,
			HolderApplication: known(i.HolderApplication), HolderAddress: known(i.HolderAddress),
			WALStatus: known(i.WALStatus), InvalidationCause: known(i.InvalidationCause),
			RestartLSN: lsn(i.RestartLSN), ConfirmedLSN: lsn(i.ConfirmedFlushLSN),
			LagBytes: i.LagBytes, RetainedBytes: i.RetainedBytes, LimitBytes: i.LimitBytes,
			SafeWALBytes: i.SafeWALBytes, Failover: i.Failover, OtherSlotsMax: i.OtherSlotsMax,
		},
		Publication: reportPublication{Name: s.cfg.Postgres.Publication, OK: s.publicationErr == nil, Tables: []string{}},
		Server: reportServer{
			Version: i.ServerVersion, InRecovery: i.InRecovery, CurrentLSN: i.CurrentLSN.String(), SystemID: known(i.SystemID),
		},
	}
	for _, t := range s.cfg.Postgres.Tables {
		r.Publication.Tables = append(r.Publication.Tables, t.String())
	}
	if p := i.RestartPinner; p != nil {
		r.Slot.RestartPinner = &reportPinner{Application: known(p.Application), Prepared: known(p.Prepared), AgeSeconds: p.Age.Seconds()}
		if p.Prepared == "" {
			r.Slot.RestartPinner.PID = &p.PID
		}
	}
	if s.live != nil {
		r.Source, r.Slot.LagSeconds = "instance", s.live.LagSeconds
	}
	for _, err := range s.problems() {
		r.Healthy = false
		p := reportProblem{Text: err.Error()}
		if h, ok := err.(interface{ Hint() string }); ok {
			p.Hint = h.Hint()
		}
		r.Problems = append(r.Problems, p)
	}
	return r
}

func (s *statusView) print(w io.Writer) error {
	t := cli.NewTable(w)
	i := s.info
	if s.live != nil {
		s.live.rows(t)
	} else {
		reason := "no running instance answered at " + s.cfg.Admin.Listen
		if s.cfg.Admin.Listen == "" {
			reason = "admin.listen is off"
		}
		t.Row("relay", "unknown", "from PostgreSQL only: "+reason)
	}
	switch {
	case !i.Exists:
		t.Row("slot", i.Name, "does not exist")
	case i.Active:
		t.Row("slot", i.Name, "active, "+holder(i))
	default:
		t.Row("slot", i.Name, "not active")
	}
	if i.Exists {
		t.Row("", "", "wal_status "+orUnknown(i.WALStatus)+", retained "+size(i.RetainedBytes)+" of "+limit(i.LimitBytes))
		if p := i.RestartPinner; p != nil {
			t.Row("", "", "held back by "+pinner(p))
		}
		mark := "unknown"
		if i.ConfirmedFlushLSN != nil {
			mark = i.ConfirmedFlushLSN.String()
		}
		lag := "lag " + size(i.LagBytes) + ", seconds unknown"
		if s.live != nil && s.live.LagSeconds != nil {
			lag = "lag " + size(i.LagBytes) + ", " + strconv.FormatFloat(*s.live.LagSeconds, 'f', 1, 64) + " s"
		}
		t.Row("watermark", mark, lag)
	}
	state := "missing, or not as it must be: see below"
	if s.publicationErr == nil {
		var names []string
		for _, table := range s.cfg.Postgres.Tables {
			names = append(names, table.String())
		}
		state = "publishes " + strings.Join(names, ", ")
	}
	t.Row("publication", s.cfg.Postgres.Publication, state)
	return t.Flush()
}

func holder(i *slot.Info) string {
	var b strings.Builder
	b.WriteString("PID unknown")
	if i.ActivePID != nil {
		b.Reset()
		fmt.Fprintf(&b, "PID %d", *i.ActivePID)
	}
	if i.HolderApplication != "" {
		b.WriteString(" " + i.HolderApplication)
	}
	if i.HolderAddress != "" {
		b.WriteString(" from " + i.HolderAddress)
	}
	return b.String()
}

func pinner(p *slot.Pinner) string {
	age := p.Age.Round(time.Second).String()
	if p.Prepared != "" {
		return "prepared transaction " + strconv.Quote(p.Prepared) + ", " + age + " old"
	}
	if p.Application != "" {
		return fmt.Sprintf("the transaction of PID %d (%s), %s old", p.PID, p.Application, age)
	}
	return fmt.Sprintf("the transaction of PID %d, %s old", p.PID, age)
}

func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func lsn(at *pglogrepl.LSN) *string {
	if at == nil {
		return nil
	}
	return new(at.String())
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func limit(n *int64) string {
	if n == nil {
		return "unlimited"
	}
	return size(n) + " allowed"
}

// size is for people: 48 MB, 1.0 GB, in units of 1024 as PostgreSQL counts.
func size(n *int64) string {
	if n == nil {
		return "unknown"
	}
	units := [...]string{"B", "KB", "MB", "GB", "TB", "PB", "EB"}
	v, unit := float64(*n), 0
	for ; v >= 1024 && unit < len(units)-1; unit++ {
		v /= 1024
	}
	digits := 0
	if unit > 0 && v < 10 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + units[unit]
}
