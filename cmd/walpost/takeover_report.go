package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/walpost/walpost/internal/cli"
	"github.com/walpost/walpost/internal/debezium/takeover"
)

// planReport is the JSON of takeover --plan. Fields are added and never renamed;
// null is what is not known.
type planReport struct {
	File        string          `json:"file"`
	Result      string          `json:"result"` // possible, findings, decision
	Findings    []planFinding   `json:"findings"`
	Slot        planSlot        `json:"slot"`
	Publication planPublication `json:"publication"`
	Tables      []string        `json:"tables"`
	Stored      planStored      `json:"stored_offset"`
	Protection  planProtection  `json:"protection"`
	Steps       []takeover.Step `json:"steps"` // none before the decision
}

type planFinding struct {
	Level string `json:"level"` // decision, finding, note
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
}

type planSlot struct {
	Name              string  `json:"name"`
	Exists            bool    `json:"exists"`
	Active            bool    `json:"active"`
	ActivePID         *int32  `json:"active_pid"`
	HolderApplication *string `json:"holder_application"`
	HolderAddress     *string `json:"holder_address"`
	WALStatus         *string `json:"wal_status"`
	RestartLSN        *string `json:"restart_lsn"`
	ConfirmedLSN      *string `json:"confirmed_lsn"`
	CurrentLSN        string  `json:"current_lsn"`
	BacklogBytes      *int64  `json:"backlog_bytes"`
	RetainedBytes     *int64  `json:"retained_bytes"`
	// FirstUnconfirmed is when the first transaction was committed that will come.
	FirstUnconfirmed *time.Time `json:"first_unconfirmed_at"`
}

type planPublication struct {
	Name       string   `json:"name"`
	Exists     bool     `json:"exists"`
	AllTables  bool     `json:"all_tables"`
	Operations string   `json:"operations"`
	Others     []string `json:"other_tables"` // up to ten, that are no outbox
	Statements []string `json:"statements"`   // that walpost runs to complete it
}

type planStored struct {
	Place        *string `json:"place"`
	Connector    string  `json:"connector"`
	State        string  `json:"state"` // agrees, ahead, behind, none, unknown
	Text         string  `json:"text"`
	FlushedLSN   *string `json:"flushed_lsn"`
	DeliveredLSN *string `json:"delivered_lsn"`
}

type planProtection struct {
	Usable     bool     `json:"usable"`
	Text       string   `json:"text"`
	Statements []string `json:"statements"`
}

func newPlanReport(file string, p *takeover.Plan) planReport {
	i := p.Slot
	r := planReport{
		File: file, Result: "possible", Findings: []planFinding{}, Steps: p.Steps,
		Slot: planSlot{
			Name: i.Name, Exists: i.Exists, Active: i.Active, ActivePID: i.ActivePID,
			HolderApplication: known(i.HolderApplication), HolderAddress: known(i.HolderAddress),
			WALStatus: known(i.WALStatus), RestartLSN: lsn(i.RestartLSN), ConfirmedLSN: lsn(i.ConfirmedFlushLSN),
			CurrentLSN: i.CurrentLSN.String(), BacklogBytes: i.LagBytes, RetainedBytes: i.RetainedBytes,
		},
		Publication: planPublication{Name: p.Publication.Name, Others: tableNames(p.Publication.Others), Statements: []string{}},
		Tables:      tableNames(p.Tables),
		Stored: planStored{
			Place: known(p.Stored.Place), Connector: p.Stored.Connector, State: string(p.Stored.State), Text: p.Stored.Text,
			FlushedLSN: orNull(p.Stored.Flushed), DeliveredLSN: orNull(p.Stored.Delivered),
		},
		Protection: planProtection{Usable: p.Protection.Usable, Text: p.Protection.Text, Statements: p.Protection.Statements},
	}
	if level := p.Worst(); level != "" {
		r.Result = map[takeover.Level]string{takeover.LevelDecision: "decision", takeover.LevelFinding: "findings"}[level]
	}
	for _, f := range p.Findings {
		r.Findings = append(r.Findings, planFinding{string(f.Level), f.Text, f.Way})
	}
	if !p.FirstUnconfirmed.IsZero() {
		r.Slot.FirstUnconfirmed = new(p.FirstUnconfirmed.UTC())
	}
	if e := p.Publication.Exists; e != nil {
		r.Publication.Exists, r.Publication.AllTables, r.Publication.Operations = true, e.AllTables, e.Operations()
	}
	for _, s := range p.Publication.Steps {
		r.Publication.Statements = append(r.Publication.Statements, s.Statement)
	}
	if r.Protection.Statements == nil {
		r.Protection.Statements = []string{}
	}
	if r.Steps == nil {
		r.Steps = []takeover.Step{}
	}
	return r
}

func orNull(at pglogrepl.LSN) *string {
	if at == 0 {
		return nil
	}
	return lsn(&at)
}

// writePlan writes what there is, what was found, and then the steps.
func writePlan(w io.Writer, p *takeover.Plan) error {
	t := cli.NewTable(w)
	writePlanState(t, p)
	for i, f := range p.Findings {
		if i == 0 {
			t.Row("")
		}
		t.Row(string(f.Level), f.Text)
		if f.Way != "" {
			t.Row("", f.Way)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return writeSteps(w, p.Steps)
}

func writePlanState(t *cli.Table, p *takeover.Plan) {
	i := p.Slot
	switch {
	case !i.Exists:
		t.Row("slot", i.Name+", does not exist")
	case i.Active:
		t.Row("slot", i.Name+", active: "+holder(i))
	default:
		t.Row("slot", i.Name+", not active")
	}
	if i.Exists {
		t.Row("", "wal_status "+orUnknown(i.WALStatus)+", retained "+size(i.RetainedBytes)+" of "+limit(i.LimitBytes))
		confirmed := "unknown"
		if i.ConfirmedFlushLSN != nil {
			confirmed = i.ConfirmedFlushLSN.String()
		}
		t.Row("position", confirmed+", of "+i.CurrentLSN.String())
		t.Row("backlog", size(i.LagBytes)+" of WAL, of all tables; "+firstUnconfirmed(p))
	}
	t.Row("tables", strings.Join(tableNames(p.Tables), ", "))
	t.Row("publication", publicationText(&p.Publication))
	place := p.Stored.Place
	if place == "" {
		place = "not looked for"
	}
	t.Row("stored offset", string(p.Stored.State)+", "+place)
	t.Row("", p.Stored.Text)
	t.Row("protection", p.Protection.Text)
}

func firstUnconfirmed(p *takeover.Plan) string {
	switch {
	case p.Unknown != "":
		return "first commit unknown: " + p.Unknown
	case p.FirstUnconfirmed.IsZero():
		return "nothing of the outbox is waiting"
	}
	return "first commit " + p.FirstUnconfirmed.UTC().Format(time.RFC3339)
}

func publicationText(p *takeover.Publication) string {
	switch {
	case p.Exists == nil:
		return p.Name + ", does not exist"
	case p.Exists.AllTables:
		return p.Name + ", of all tables: " + p.Exists.Operations()
	case len(p.Steps) > 0:
		return p.Name + ", lacks tables: " + p.Exists.Operations()
	case len(p.Others) > 0:
		return p.Name + ", has the outbox tables: " + p.Exists.Operations() + "; and others, such as " + p.Others[0].String()
	}
	return p.Name + ", has the outbox tables: " + p.Exists.Operations()
}

// writeSteps writes what can be copied as it is.
func writeSteps(w io.Writer, steps []takeover.Step) error {
	var b strings.Builder
	for i, s := range steps {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d. %s: %s\n", i+1, s.Who, s.Text)
		for _, line := range s.Do {
			end := ""
			if s.IsSQL {
				end = ";"
			}
			b.WriteString("   " + strings.ReplaceAll(line, "\n", "\n   ") + end + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
