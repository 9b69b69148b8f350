package router

import (
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/walpost/walpost/internal/debezium/connect"
	"github.com/walpost/walpost/internal/debezium/expand"
	"github.com/walpost/walpost/sink"
)

// onUpdate is what table.op.invalid.behavior says.
type onUpdate uint8

const (
	warnUpdate onUpdate = iota
	errorUpdate
	failUpdate
)

// Router holds what all plans share.
type Router struct {
	opt        Options
	log        *zap.Logger
	placements []placement
	enveloped  bool // the value is a struct
	onUpdate   onUpdate
	topics     topics
	schemas    envelopes
	expander   *expand.Expander // nil: payloads are not expanded
	context    []sink.Header    // serialized once
	idForm     idForm
	messages   *messages
	heartbeat  *heartbeat
}

// New checks the options as Debezium does at its start, and refuses with which it
// would start and then fail at every row. The error is an *OptionError where an
// option of the configuration is at fault.
func New(o Options) (*Router, error) {
	switch {
	case o.Key == nil || o.Value == nil || o.Header == nil:
		return nil, errors.New("router: a converter is missing")
	case o.TopicPrefix == "":
		return nil, &OptionError{Name: "topic.prefix", Text: "missing", way: "set it; it names the connector in headers and schemas"}
	case o.ContextHeaders != 0 && o.ContextHeaders != 3 && o.ContextHeaders != 4:
		return nil, errors.New("router: there are 0, 3 or 4 context headers")
	}
	o.defaults()
	r := &Router{opt: o, log: o.Log, schemas: newEnvelopes()}
	if err := r.behaviour(); err != nil {
		return nil, err
	}
	if o.HasPlacement || o.Placement != "" {
		if err := r.place(); err != nil {
			return nil, err
		}
	}
	var err error
	if r.topics, err = newTopics(&o); err != nil {
		return nil, err
	}
	expander, err := expand.New(expand.Options{JSONNull: o.JSONNull, JSONEmptyArray: o.JSONEmptyArray, RootName: o.FieldEventPayload})
	if err != nil {
		return nil, err
	}
	if o.ExpandJSON {
		r.expander = expander
	}
	if r.context, err = contextHeaders(&o); err != nil {
		return nil, err
	}
	r.idForm = findIDForm(o.Header)
	if o.MessageTopics {
		r.messages = newMessages(&o)
	}
	if o.HeartbeatTopic != "" {
		if r.heartbeat, err = newHeartbeat(&o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (o *Options) defaults() {
	for _, d := range []struct {
		into  *string
		value string
	}{
		{&o.FieldEventID, "id"},
		{&o.FieldEventKey, "aggregateid"},
		{&o.FieldEventPayload, "payload"},
		{&o.RouteByField, "aggregatetype"},
		{&o.TopicRegex, DefaultTopicRegex},
		{&o.TopicReplace, DefaultTopicReplace},
		{&o.TaskID, "0"},
		{&o.ConnectorName, "postgresql"},
		{&o.Version, DefaultVersion},
		{&o.TopicDelimiter, "."},
		{&o.Unavailable, DefaultUnavailable},
	} {
		if *d.into == "" {
			*d.into = d.value
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
}

func (r *Router) behaviour() error {
	switch strings.ToLower(javaTrim(r.opt.OpInvalid)) {
	case "", "warn":
		r.onUpdate = warnUpdate
	case "error":
		r.onUpdate = errorUpdate
	case "fatal":
		r.onUpdate = failUpdate
	default:
		return &OptionError{
			Name: "table.op.invalid.behavior", Value: r.opt.OpInvalid, Text: "neither warn, error nor fatal", way: "write warn, error or fatal",
		}
	}
	return nil
}

func (r *Router) place() error {
	var err error
	if r.placements, err = parsePlacements(r.opt.Placement); err != nil {
		return err
	}
	for _, p := range r.placements {
		r.enveloped = r.enveloped || p.place == inEnvelope
	}
	// A column that is missing and ignored takes its field along.
	if name, twice := repeated(r.placements); twice && !r.opt.MissingIgnored {
		return &OptionError{
			Name: "table.fields.additional.placement", Value: r.opt.Placement,
			Text: "the envelope would have two fields " + name, way: "give one of them another alias, as in column:envelope:alias",
		}
	}
	return nil
}

// textSchema is the schema of the context headers.
var textSchema = &connect.Schema{Type: connect.String}

// contextHeaders serializes what Debezium puts on every change since 3.2.
func contextHeaders(o *Options) ([]sink.Header, error) {
	all := []struct{ name, value string }{
		{"connectorLogicalName", o.TopicPrefix}, {"taskId", o.TaskID}, {"connectorName", o.ConnectorName}, {"runId", o.RunID},
	}
	var list []sink.Header
	for _, h := range all[:o.ContextHeaders] {
		value, null, err := o.Header.Convert([]byte{}, textSchema, connect.Value{Valid: true, Bytes: []byte(h.value)})
		if err != nil {
			return nil, &OptionError{
				Name: "header.converter", Text: "the header __debezium.context." + h.name + ": " + err.Error(),
				way: hint(err, "set extended.headers.enabled to false, or choose another header.converter"),
			}
		}
		if null {
			value = nil
		}
		list = append(list, sink.Header{Name: "__debezium.context." + h.name, Value: value})
	}
	return list, nil
}
