package metrics

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/walpost/walpost/sink"
)

// Options of Metrics.
type Options struct {
	Slot      string // constant label of every series
	Version   string
	Revision  string
	MaxTopics int // distinct topic labels; the rest is "other". Default 200
}

// Metrics holds the registry. Its methods are safe for concurrent use.
type Metrics struct {
	opt        Options
	registry   *prometheus.Registry
	counters   map[string]*prometheus.CounterVec
	histograms map[string]prometheus.Histogram
	gauges     map[string]*prometheus.Desc

	// Taken out of the maps for the hot path.
	received    prometheus.Counter
	transaction prometheus.Histogram
	latency     prometheus.Histogram
	produce     prometheus.Histogram
	batch       prometheus.Histogram
	duplicates  prometheus.Counter
	sequence    prometheus.Counter

	mu     sync.RWMutex
	topics map[string]topicCounters
	source func() Values
}

type topicCounters struct{ events, bytes prometheus.Counter }

// New makes the registry from the table.
func New(opt Options) *Metrics {
	if opt.MaxTopics <= 0 {
		opt.MaxTopics = 200
	}
	m := &Metrics{
		opt:        opt,
		registry:   prometheus.NewRegistry(),
		counters:   make(map[string]*prometheus.CounterVec),
		histograms: make(map[string]prometheus.Histogram),
		gauges:     make(map[string]*prometheus.Desc),
		topics:     make(map[string]topicCounters),
	}
	slot := prometheus.Labels{"slot": opt.Slot}
	register := prometheus.WrapRegistererWith(slot, m.registry)
	for _, d := range definitions() {
		name := prefix + d.name
		switch d.kind {
		case counter:
			m.counters[d.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.help}, d.labels)
			register.MustRegister(m.counters[d.name])
		case histogram:
			m.histograms[d.name] = prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: d.help, Buckets: d.buckets})
			register.MustRegister(m.histograms[d.name])
		case gauge:
			m.gauges[d.name] = prometheus.NewDesc(name, d.help, d.labels, nil)
		}
	}
	register.MustRegister((*gauges)(m), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.received = m.counters["events_received_total"].WithLabelValues()
	m.duplicates = m.counters["broker_duplicates_total"].WithLabelValues()
	m.sequence = m.counters["sequence_errors_total"].WithLabelValues()
	m.transaction = m.histograms["transaction_events"]
	m.latency = m.histograms["commit_to_ack_seconds"]
	m.produce = m.histograms["produce_seconds"]
	m.batch = m.histograms["batch_records"]
	return m
}

// Observe sets where the gauges come from.
func (m *Metrics) Observe(source func() Values) {
	m.mu.Lock()
	m.source = source
	m.mu.Unlock()
}

// Handler serves the text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Registry is for tests.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// gauges is the collector of everything that comes from Values.
type gauges Metrics

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range g.gauges {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	g.mu.RLock()
	source := g.source
	g.mu.RUnlock()
	samples := []sample{{"build_info", 1, []string{g.opt.Version, g.opt.Revision, runtime.Version()}}}
	if source != nil {
		v := source()
		samples = append(samples, v.samples()...)
	}
	for _, s := range samples {
		d, ok := g.gauges[s.name]
		if !ok {
			panic(fmt.Sprintf("metrics: %s is not in the table", s.name))
		}
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, s.value, s.labels...)
	}
}

// EventReceived counts decoded outbox rows.
func (m *Metrics) EventReceived(n int) { m.received.Add(float64(n)) }

// EventIgnored counts changes that are not published on purpose.
func (m *Metrics) EventIgnored(reason string, n int) {
	m.counters["events_ignored_total"].WithLabelValues(reason).Add(float64(n))
}

// EventsAcked counts n events of one transaction, acked after latency.
func (m *Metrics) EventsAcked(topic string, n int, latency time.Duration) {
	m.topic(topic).events.Add(float64(n))
	seconds := latency.Seconds()
	for range n {
		m.latency.Observe(seconds)
	}
}

// TransactionEvents notes the size of a transaction with outbox events.
func (m *Metrics) TransactionEvents(n int) { m.transaction.Observe(float64(n)) }

// StreamConnect counts attempts to start a session.
func (m *Metrics) StreamConnect(result string) {
	m.counters["stream_connects_total"].WithLabelValues(result).Inc()
}

// StreamDisconnect counts sessions that ended.
func (m *Metrics) StreamDisconnect(reason string) {
	m.counters["stream_disconnects_total"].WithLabelValues(reason).Inc()
}

// DecodeError counts messages that could not be decoded.
func (m *Metrics) DecodeError(reason string) {
	m.counters["decode_errors_total"].WithLabelValues(reason).Inc()
}

// ProduceDone implements sink.Observer.
func (m *Metrics) ProduceDone(took time.Duration) { m.produce.Observe(took.Seconds()) }

// BatchAcked implements sink.Observer.
func (m *Metrics) BatchAcked(topic string, records, bytes int) {
	m.topic(topic).bytes.Add(float64(bytes))
	m.batch.Observe(float64(records))
}

// BatchFailed implements sink.Observer.
func (m *Metrics) BatchFailed(class sink.Class, reason string, _ int) {
	m.counters["publish_errors_total"].WithLabelValues(class.String(), reason).Inc()
}

// BatchRetried implements sink.Observer.
func (m *Metrics) BatchRetried(reason string) {
	m.counters["publish_retries_total"].WithLabelValues(reason).Inc()
}

// BrokerDuplicate implements sink.Observer.
func (m *Metrics) BrokerDuplicate() { m.duplicates.Inc() }

// SequenceLost implements sink.Observer.
func (m *Metrics) SequenceLost() { m.sequence.Inc() }

func (m *Metrics) topic(name string) topicCounters {
	m.mu.RLock()
	c, ok := m.topics[name]
	m.mu.RUnlock()
	if ok {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok = m.topics[name]; ok {
		return c
	}
	label := name
	if len(m.topics) >= m.opt.MaxTopics {
		// The vectors hand out the same counter again for the same label.
		label = "other"
	}
	c = topicCounters{
		m.counters["events_published_total"].WithLabelValues(label),
		m.counters["published_bytes_total"].WithLabelValues(label),
	}
	if label == name {
		m.topics[name] = c
	}
	return c
}

var _ sink.Observer = (*Metrics)(nil)
