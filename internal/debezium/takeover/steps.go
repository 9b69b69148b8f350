package takeover

import (
	"fmt"
	"net/url"
	"time"
)

// steps says who does what, in order.
func (p *Plan) steps(opt *Options) {
	add := func(who, text string, do ...string) { p.Steps = append(p.Steps, Step{Who: who, Text: text, Do: do}) }
	sql := func(who, text string, do ...string) {
		p.Steps = append(p.Steps, Step{Who: who, Text: text, Do: do, IsSQL: true})
	}
	if len(p.Protection.Statements) > 0 {
		sql(You, "make the checkpoint tables usable, as the owner of the database", p.Protection.Statements...)
	}
	held := p.Slot.Active
	if held {
		add(You, p.stop(opt), stopCommand(opt)...)
	}
	add(You, "start the takeover", opt.Command)
	switch {
	case held && opt.Terminate:
		add(Walpost, fmt.Sprintf("ends the session of %s, and again if it comes back", Holder(p.Slot)))
	case held:
		add(Walpost, fmt.Sprintf("waits until %s lets go of slot %s", Holder(p.Slot), p.Slot.Name))
	}
	if opt.Settle > 0 {
		add(Walpost, "waits "+opt.Settle.String()+" more, for what Debezium's producer still has in hand")
	}
	for _, s := range p.Publication.Steps {
		sql(Walpost, s.Text, s.Statement)
	}
	since := "since the first commit that Debezium has not confirmed"
	if !p.FirstUnconfirmed.IsZero() {
		since += " (" + p.FirstUnconfirmed.UTC().Format(time.RFC3339) + ")"
	}
	add(Walpost, "reads the ends of the topics' partitions "+since+", and sends nothing again that is there")
	add(Walpost, fmt.Sprintf("streams from %s on, and runs like walpost run --debezium", p.Slot.ConfirmedFlushLSN))
	add(You, `when "walpost status" says that it streams, run it by "walpost run --debezium" from then on; `+
		"leave the connector stopped and keep its file, for handing back")
}

// stop says how Debezium is stopped. A paused connector keeps its session, so
// that the slot stays its own.
func (p *Plan) stop(opt *Options) string {
	switch {
	case opt.Spec.Server:
		return "stop Debezium Server"
	case opt.Terminate:
		return "pause the connector: one that runs comes back as often as its session is ended"
	}
	return "stop the connector, or its standalone worker; pausing is not enough, because a paused connector keeps the slot"
}

// stopCommand calls Connect's REST interface, where there is one.
func stopCommand(opt *Options) []string {
	if opt.Spec.Server || opt.Spec.Name == "" {
		return nil
	}
	verb := "stop"
	if opt.Terminate {
		verb = "pause"
	}
	return []string{fmt.Sprintf("curl -X PUT http://CONNECT:8083/connectors/%s/%s", url.PathEscape(opt.Spec.Name), verb)}
}
