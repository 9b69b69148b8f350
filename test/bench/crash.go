package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/walpost/walpost/checkpoint"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
	"github.com/walpost/walpost/internal/testkit/topic"
)

// Crash is what it costs to send nothing twice after a crash, and how long a
// start after one takes.
//
// Nobody can switch the protection off but by taking its rights away: "off" is a
// role without a right on the checkpoint tables, and a slot whose transactional
// id Kafka denies. Both log in the same way at the same listener.
type Crash struct {
	Steady  Cost      `json:"steady"`  // at the rate of the latency phase
	Backlog Cost      `json:"backlog"` // as fast as it goes
	Starts  []Restart `json:"starts"`
}

// Cost compares two relays, of which one has all protection and one has none.
// The ratios are those within a repetition: what else the machine does changes
// from one to the next.
type Cost struct {
	Repetitions int   `json:"repetitions"`
	Events      int   `json:"events"`    // of each repetition
	CPUOn       *Stat `json:"cpu_us_on"` // per event
	CPUOff      *Stat `json:"cpu_us_off"`
	CPURatio    *Stat `json:"cpu_ratio"`
	P99On       *Stat `json:"p99_ms_on"` // null if it was not measured
	P99Off      *Stat `json:"p99_ms_off"`
	P99Ratio    *Stat `json:"p99_ratio"`
}

// measured is a value of each repetition, by side.
type measured map[string][]float64

func (m measured) ratio() *Stat {
	var ratios []float64
	for i := range min(len(m["on"]), len(m["off"])) {
		ratios = append(ratios, m["on"][i]/m["off"][i])
	}
	return stat(ratios)
}

func newCost(events int, cpu, p99 measured) Cost {
	return Cost{
		Repetitions: len(cpu["on"]), Events: events,
		CPUOn: stat(cpu["on"]), CPUOff: stat(cpu["off"]), CPURatio: cpu.ratio(),
		P99On: stat(p99["on"]), P99Off: stat(p99["off"]), P99Ratio: p99.ratio(),
	}
}

// Restart is one start behind a kill -9.
type Restart struct {
	Kind       string  `json:"kind"`
	Tail       int     `json:"tail_records"` // behind the checkpoint, all of them delivered
	Partitions int     `json:"partitions"`
	Seconds    float64 `json:"seconds"` // from the start of the process to the first new event
	Duplicates int     `json:"duplicates"`
}

const (
	crashRounds     = 6
	crashSteady     = 10 * time.Second // of each round
	crashBacklog    = 200_000          // rows of each round
	crashStarts     = 3                // of each kind
	crashTail       = 100_000
	crashRows       = 200_000 // of which the relay is killed in the middle
	crashPartitions = 48
)

// slowest start of those that do not wait for PostgreSQL to decode a large
// transaction again, and all duplicates of all starts.
func (c *Crash) slowest() (seconds, duplicates float64) {
	for _, s := range c.Starts {
		if s.Kind == behindCheckpoint {
			seconds = max(seconds, s.Seconds)
		}
		duplicates += float64(s.Duplicates)
	}
	return seconds, duplicates
}

func (c *Crash) print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "\nprotection against duplicates of a crash, on against off (the rights for it denied); %d repetitions, both at the same time over the same rows\n",
		c.Steady.Repetitions); err != nil {
		return err
	}
	t := table{left: 1}
	t.add("medians", "events", "CPU µs/event on", "off", "ratio", "from", "to", "p99 ms on", "off", "ratio", "from", "to")
	for _, row := range []struct {
		name string
		cost *Cost
	}{{fmt.Sprintf("%s events/s", number(latencyRate, 0)), &c.Steady}, {"backlog", &c.Backlog}} {
		cells := []string{row.name, number(float64(row.cost.Events), 0)}
		for _, v := range []struct {
			on, off, ratio *Stat
		}{{row.cost.CPUOn, row.cost.CPUOff, row.cost.CPURatio}, {row.cost.P99On, row.cost.P99Off, row.cost.P99Ratio}} {
			ratio := v.ratio
			if ratio == nil {
				ratio = &Stat{nan(), nan(), nan()}
			}
			cells = append(cells, optional(median(v.on), 1), optional(median(v.off), 1), number(ratio.Median, 3), number(ratio.Min, 2), number(ratio.Max, 2))
		}
		t.add(cells...)
	}
	if err := t.print(w); err != nil {
		return err
	}
	if _, err := fmt.Fprint(w, "\nstart after kill -9: in small transactions with the checkpoint behind, or in the middle of a large one, all of which comes again from PostgreSQL\n"); err != nil {
		return err
	}
	t = table{left: 1}
	t.add("killed in", "tail records", "partitions", "start to first new event s", "duplicates")
	for _, s := range c.Starts {
		t.add(s.Kind, number(float64(s.Tail), 0), number(float64(s.Partitions), 0), number(s.Seconds, 2), number(float64(s.Duplicates), 0))
	}
	return t.print(w)
}

// sides are on and off.
var sides = [2]string{"on", "off"}

// crashRig is a rig with a cluster that knows rights, and two roles.
type crashRig struct {
	*rig
	login []string
}

func (r *rig) crash(ctx context.Context) (result *Crash, err error) {
	inner, end, err := r.onKafka(ctx, kafkaserver.Options{Throughput: true, SASL: true, Authorizer: true, Log: r.say})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	c := &crashRig{rig: inner}
	if err := c.grant(ctx); err != nil {
		return nil, err
	}
	result = &Crash{}
	if err := c.steady(ctx, &result.Steady); err != nil {
		return nil, fmt.Errorf("steady load: %w", err)
	}
	if err := c.full(ctx, &result.Backlog); err != nil {
		return nil, fmt.Errorf("backlog: %w", err)
	}
	for n := range 2 * crashStarts {
		s, err := c.restart(ctx, []string{behindCheckpoint, inTransaction}[n%2], n)
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		result.Starts = append(result.Starts, s)
		c.say("crash: %s, %s records of tail, %.2f s to the first new event, %d duplicates", s.Kind, number(float64(s.Tail), 0), s.Seconds, s.Duplicates)
	}
	return result, nil
}

func role(side string) string { return "bench_" + side }

// grant gives one side all rights and the other those alone that every relay
// needs.
func (c *crashRig) grant(ctx context.Context) error {
	password := filepath.Join(c.dir.Path, "password")
	if err := os.WriteFile(password, []byte(kafkaserver.Password), 0o600); err != nil {
		return err
	}
	c.login = []string{"--kafka-sasl-mechanism", "SCRAM-SHA-256", "--kafka-sasl-username", kafkaserver.User, "--kafka-sasl-password-file", password}
	for _, side := range sides {
		if err := c.exec(ctx, "create role "+role(side)+" login replication password 'bench'"); err != nil {
			return err
		}
	}
	if err := c.exec(ctx, checkpoint.Grants(role("on"))...); err != nil {
		return err
	}
	var system string
	if err := c.sql.QueryRow(ctx, "select system_identifier::text from pg_control_system()").Scan(&system); err != nil {
		return err
	}
	entry := func(kind kafka.ResourceType, prefix string, operation kafka.ACLOperationType) kafka.ACLEntry {
		return kafka.ACLEntry{
			ResourceType: kind, ResourceName: prefix, ResourcePatternType: kafka.PatternTypePrefixed,
			Principal: "User:" + kafkaserver.User, Host: "*", Operation: operation, PermissionType: kafka.ACLPermissionTypeAllow,
		}
	}
	response, err := c.offsets.client.CreateACLs(ctx, &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{
		entry(kafka.ResourceTypeTopic, "crash.", kafka.ACLOperationTypeWrite),
		entry(kafka.ResourceTypeTopic, "crash.", kafka.ACLOperationTypeRead),
		entry(kafka.ResourceTypeTransactionalID, "walpost-"+system+"-crash_on_", kafka.ACLOperationTypeWrite),
	}})
	if err != nil {
		return err
	}
	return errors.Join(response.Errors...)
}

// prepare makes the slot and the topic of a relay.
func (c *crashRig) prepare(ctx context.Context, name string, width int) (topicName string, err error) {
	topicName = "crash." + name
	spec := topic.Spec{Name: topicName, Partitions: width, Config: map[string]string{"message.timestamp.type": "LogAppendTime"}}
	return topicName, errors.Join(c.createSlot(ctx, "crash_"+name), c.offsets.create(ctx, spec))
}

// relay starts one with the rights of a side.
func (c *crashRig) relay(ctx context.Context, side, name string) (*walpost, error) {
	return c.startWalpostAt(ctx, c.pg.DSNAs(database, role(side), "bench"), c.cluster.SASLAddr(), "crash_"+name, "crash."+name, c.login...)
}

// pair is one relay with all protection, and one without any.
type pair struct {
	names  map[string]string // of slot and topic, by side
	relays map[string]*walpost
}

func (c *crashRig) pair(ctx context.Context, round int, phase string, before func() error) (*pair, error) {
	p := &pair{names: map[string]string{}, relays: map[string]*walpost{}}
	for _, side := range sides {
		p.names[side] = fmt.Sprintf("%s_%s_%d", side, phase, round)
		if _, err := c.prepare(ctx, p.names[side], partitions); err != nil {
			return p, err
		}
	}
	if err := before(); err != nil {
		return p, err
	}
	order := sides
	if round%2 == 1 { // nobody always comes first
		order[0], order[1] = order[1], order[0]
	}
	for _, side := range order {
		w, err := c.relay(ctx, side, p.names[side])
		if err != nil {
			return p, err
		}
		p.relays[side] = w
	}
	return p, nil
}

func (p *pair) close() {
	for _, w := range p.relays {
		w.close()
	}
}

// check demands that each side is what it is taken for.
func (p *pair) check(ctx context.Context) error {
	for side, w := range p.relays {
		s, err := w.status(ctx)
		if err != nil {
			return err
		}
		fence, table := s.Protection.Fence == nil, s.Protection.Checkpoint == nil
		if fence != (side == "on") || table != (side == "on") {
			return fmt.Errorf("the relay with protection %s says: fence %v, checkpoint %v", side, fence, table)
		}
	}
	return nil
}

func (p *pair) cpu() (map[string]float64, error) {
	seconds := map[string]float64{}
	for side, w := range p.relays {
		var err error
		if seconds[side], err = cpuOf(w.PID()); err != nil {
			return nil, err
		}
	}
	return seconds, nil
}

// await waits until n events have arrived on both sides. One that begins as
// these do has no transaction markers.
func (c *crashRig) await(ctx context.Context, p *pair, n int) error {
	for side, w := range p.relays {
		if _, err := c.offsets.await(ctx, "crash."+p.names[side], int64(n), w.child, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (c *crashRig) end(ctx context.Context, p *pair) error {
	var errs []error
	for side, w := range p.relays {
		errs = append(errs, w.stop(ctx))
		errs = append(errs, c.dropSlots(ctx, "crash_"+p.names[side]), topic.Delete(ctx, c.cluster.Addr(), "crash."+p.names[side]))
	}
	return errors.Join(errs...)
}

// steady compares the two at a fixed rate.
func (c *crashRig) steady(ctx context.Context, cost *Cost) error {
	cpu, p99 := measured{}, measured{}
	for round := range crashRounds {
		p, err := c.pair(ctx, round, "steady", func() error { return nil })
		defer p.close()
		if err != nil {
			return err
		}
		warm, err := c.load(ctx, "WarmUp", latencyWarmUp, latencyRate)
		if err != nil {
			return err
		}
		if err := p.check(ctx); err != nil {
			return err
		}
		before, err := p.cpu()
		if err != nil {
			return err
		}
		kind := fmt.Sprintf("Crash%d", round)
		load, err := c.load(ctx, kind, crashSteady, latencyRate)
		if err != nil {
			return err
		}
		if err := c.await(ctx, p, len(warm.inserts)+len(load.inserts)); err != nil {
			return err
		}
		after, err := p.cpu()
		if err != nil {
			return err
		}
		for _, side := range sides {
			waits, err := c.waits(ctx, "crash."+p.names[side], kind)
			if err != nil {
				return err
			}
			slices.Sort(waits)
			cpu[side] = append(cpu[side], (after[side]-before[side])*1e6/float64(len(load.inserts)))
			p99[side] = append(p99[side], percentile(waits, 99))
		}
		c.say("crash: steady load, repetition %d: CPU %.2f s on, %.2f s off", round+1, after["on"]-before["on"], after["off"]-before["off"])
		if err := c.end(ctx, p); err != nil {
			return err
		}
	}
	*cost = newCost(int(crashSteady.Seconds())*latencyRate, cpu, p99)
	return nil
}

// full compares the two over a backlog.
func (c *crashRig) full(ctx context.Context, cost *Cost) error {
	cpu := measured{}
	for round := range crashRounds {
		p, err := c.pair(ctx, round, "backlog", func() error {
			_, err := c.fill(ctx, crashBacklog, rowsPerTx)
			return err
		})
		defer p.close()
		if err != nil {
			return err
		}
		if err := c.await(ctx, p, crashBacklog); err != nil {
			return err
		}
		used, err := p.cpu()
		if err != nil {
			return err
		}
		for _, side := range sides {
			cpu[side] = append(cpu[side], used[side]*1e6/crashBacklog)
		}
		c.say("crash: backlog, repetition %d: CPU %.2f s on, %.2f s off", round+1, used["on"], used["off"])
		if err := errors.Join(p.check(ctx), c.end(ctx, p)); err != nil {
			return err
		}
	}
	*cost = newCost(crashBacklog, cpu, nil)
	return nil
}
