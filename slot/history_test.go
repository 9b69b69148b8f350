package slot

import (
	"errors"
	"testing"

	"github.com/jackc/pglogrepl"
)

func TestR6HistoryOfTheServer(t *testing.T) {
	t.Parallel()
	// Timeline 1 ended at 0/200, timeline 2 at 0/300.
	const file = "1\t0/200\tno recovery target specified\n\n2\t0/300\tbefore 2026-01-01\n"
	tests := []struct {
		name    string
		history History
		server  pglogrepl.IdentifySystemResult
		foreign string
	}{
		{"nothing is known", History{}, pglogrepl.IdentifySystemResult{SystemID: "b", XLogPos: 1}, ""},
		{"the same", History{SystemID: "a", Timeline: 1, LSN: 0x100}, pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 1, XLogPos: 0x100}, ""},
		{
			"another cluster", History{SystemID: "a", Timeline: 1, LSN: 0x100}, pglogrepl.IdentifySystemResult{SystemID: "b", Timeline: 1, XLogPos: 0x100},
			"the server is another database cluster: system identifier b, was a",
		},
		{
			"behind what is settled", History{SystemID: "a", Timeline: 1, LSN: 0x101}, pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 1, XLogPos: 0x100},
			"the server's WAL ends at 0/100, before 0/101 which was already received or published",
		},
		{
			"behind what is in flight", History{SystemID: "a", Timeline: 1, LSN: 0x100, Reach: 0x180},
			pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 1, XLogPos: 0x170},
			"the server's WAL ends at 0/170, before 0/180 which was already received or published",
		},
		{"promoted behind us", History{SystemID: "a", Timeline: 1, LSN: 0x100, Reach: 0x200}, pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 3, XLogPos: 0x400}, ""},
		{
			"promoted before what is settled", History{SystemID: "a", Timeline: 1, LSN: 0x201}, pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 3, XLogPos: 0x400},
			"timeline 3 of the server left timeline 1 at 0/200, before 0/201 which was already received or published",
		},
		{
			"promoted before what is in flight", History{SystemID: "a", Timeline: 2, LSN: 0x250, Reach: 0x301},
			pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 3, XLogPos: 0x400},
			"timeline 3 of the server left timeline 2 at 0/300, before 0/301 which was already received or published",
		},
		{
			"no descendant", History{SystemID: "a", Timeline: 7, LSN: 0x100}, pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 3, XLogPos: 0x400},
			"timeline 3 of the server does not descend from timeline 7",
		},
	}
	for _, tt := range tests {
		err := tt.history.check(tt.server, func() (string, error) { return file, nil })
		if tt.foreign == "" && err != nil || tt.foreign != "" && (!errors.Is(err, ErrForeign) || err.Error() != tt.foreign) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.foreign)
		}
	}
	broken := errors.New("no file")
	h := History{SystemID: "a", Timeline: 1, LSN: 1}
	if err := h.check(pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 2, XLogPos: 2}, func() (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("without the file: %v", err)
	}
	for _, text := range []string{"x\t0/1", "1\tnowhere"} {
		err := h.check(pglogrepl.IdentifySystemResult{SystemID: "a", Timeline: 2, XLogPos: 2}, func() (string, error) { return text, nil })
		if err == nil || errors.Is(err, ErrForeign) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
