package metrics

import (
	"log"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
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

	topics  *bounded[*topicCounters]
	reasons *bounded[string] // the label as it is used
	source  atomic.Pointer[func() Values]
}

type topicCounters struct{ events, bytes prometheus.Counter }

// maxReasons bounds the labels that come from other people's error codes. It is
// above the number of all that are known.
const maxReasons = 100

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
		reasons:    newBounded(maxReasons, func(label string) string { return label }),
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
	m.topics = newBounded(opt.MaxTopics, func(label string) *topicCounters {
		return &topicCounters{
			m.counters["events_published_total"].WithLabelValues(label),
			m.counters["published_bytes_total"].WithLabelValues(label),
		}
	})
	return m
}

// Observe sets where the gauges come from.
func (m *Metrics) Observe(source func() Values) { m.source.Store(&source) }

// Handler serves the text format. A source that hangs fails the scrape, so that
// Prometheus sees the target down, and does not pile up scrapes. errorLog may be
// nil.
func (m *Metrics) Handler(errorLog *log.Logger) http.Handler {
	opt := promhttp.HandlerOpts{
		// One bad series must not hide all the others.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: 4,
		Timeout:             8 * time.Second, // below Prometheus' own default of 10 s
	}
	if errorLog != nil {
		opt.ErrorLog = errorLog
	}
	return promhttp.HandlerFor(m.registry, opt)
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
	samples := []sample{{"build_info", 1, []string{g.opt.Version, g.opt.Revision, runtime.Version()}}}
	if source := g.source.Load(); source != nil {
		v := (*source)()
		samples = append(samples, v.samples()...)
	}
	for _, s := range samples {
		for i := range s.labels {
			s.labels[i] = utf8Text(s.labels[i])
		}
		d := g.gauges[s.name]
		series, err := prometheus.NewConstMetric(d, prometheus.GaugeValue, s.value, s.labels...)
		if err != nil {
			series = prometheus.NewInvalidMetric(d, err)
		}
		ch <- series
	}
}

// utf8Text is what a label may hold; a database may be named in any bytes.
func utf8Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// EventReceived counts decoded outbox rows.
func (m *Metrics) EventReceived(n int) { m.received.Add(float64(n)) }

// EventIgnored counts changes that are not published on purpose.
func (m *Metrics) EventIgnored(reason string, n int) {
	m.counters["events_ignored_total"].WithLabelValues(m.reasons.get(reason)).Add(float64(n))
}

// EventsAcked counts n events of one transaction, acked after latency.
func (m *Metrics) EventsAcked(topic string, n int, latency time.Duration) {
	m.topics.get(topic).events.Add(float64(n))
	// Clocks differ: a negative time would make the sum, a counter, go back.
	seconds := max(latency, 0).Seconds()
	for range n {
		m.latency.Observe(seconds)
	}
}

// TransactionEvents notes the size of a transaction with outbox events.
func (m *Metrics) TransactionEvents(n int) { m.transaction.Observe(float64(n)) }

// StreamConnect counts attempts to start a session.
func (m *Metrics) StreamConnect(result string) { m.count("stream_connects_total", result) }

// StreamDisconnect counts sessions that ended.
func (m *Metrics) StreamDisconnect(reason string) { m.count("stream_disconnects_total", reason) }

// DecodeError counts messages that could not be decoded.
func (m *Metrics) DecodeError(reason string) { m.count("decode_errors_total", reason) }

// ProduceDone implements sink.Observer.
func (m *Metrics) ProduceDone(took time.Duration) { m.produce.Observe(max(took, 0).Seconds()) }

// BatchAcked implements sink.Observer.
func (m *Metrics) BatchAcked(topic string, records, bytes int) {
	m.topics.get(topic).bytes.Add(float64(bytes))
	m.batch.Observe(float64(records))
}

// BatchFailed implements sink.Observer.
func (m *Metrics) BatchFailed(class sink.Class, reason string, _ int) {
	m.counters["publish_errors_total"].WithLabelValues(class.String(), m.reasons.get(reason)).Inc()
}

// BatchRetried implements sink.Observer.
func (m *Metrics) BatchRetried(reason string) { m.count("publish_retries_total", reason) }

// BrokerDuplicate implements sink.Observer.
func (m *Metrics) BrokerDuplicate() { m.duplicates.Inc() }

// AlreadyThere implements sink.Observer; the relay counts these as ignored.
func (m *Metrics) AlreadyThere(int) {}

// SequenceLost implements sink.Observer.
func (m *Metrics) SequenceLost() { m.sequence.Inc() }

// count adds one to a counter whose only label is a reason.
func (m *Metrics) count(name, reason string) {
	m.counters[name].WithLabelValues(m.reasons.get(reason)).Inc()
}

var _ sink.Observer = (*Metrics)(nil)
