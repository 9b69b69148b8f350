package logging

import (
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The values of Options.Format. Auto is console on a terminal, else JSON.
const (
	Auto    = "auto"
	Console = "console"
	JSON    = "json"
)

// Options of New. The zero value logs JSON at info to nowhere.
type Options struct {
	Writer   io.Writer // nil discards
	Level    string    // debug, info, warn, error; empty is info
	Format   string    // Auto, Console, JSON; empty is Auto
	Terminal bool      // Writer is a terminal
}

// New builds a logger. Lines are written one at a time and unbuffered, so none
// is lost when the process ends.
func New(o Options) (*zap.Logger, error) {
	level := zapcore.InfoLevel
	if o.Level != "" {
		var err error
		if level, err = zapcore.ParseLevel(o.Level); err != nil {
			return nil, fmt.Errorf("log level %q is not known", o.Level)
		}
	}
	encoder, err := newEncoder(o.Format, o.Terminal)
	if err != nil {
		return nil, err
	}
	if o.Writer == nil {
		return zap.NewNop(), nil
	}
	core := zapcore.NewCore(encoder, &lockedWriter{w: o.Writer}, level)
	return zap.New(&scrubbed{core}, zap.ErrorOutput(&lockedWriter{w: o.Writer})), nil
}

func newEncoder(format string, terminal bool) (zapcore.Encoder, error) {
	keys := zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", MessageKey: "msg", NameKey: "logger",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeTime:     utc,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.SecondsDurationEncoder,
	}
	switch {
	case format == JSON, (format == Auto || format == "") && !terminal:
		return zapcore.NewJSONEncoder(keys), nil
	case format == Console, format == Auto, format == "":
		keys.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		keys.EncodeLevel = padded
		keys.EncodeDuration = zapcore.StringDurationEncoder
		keys.ConsoleSeparator = "  "
		return zapcore.NewConsoleEncoder(keys), nil
	default:
		return nil, fmt.Errorf("log format %q is not known", format)
	}
}

func utc(t time.Time, e zapcore.PrimitiveArrayEncoder) {
	e.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// padded keeps the messages of a terminal in one column.
func padded(l zapcore.Level, e zapcore.PrimitiveArrayEncoder) {
	e.AppendString(fmt.Sprintf("%-5s", l.CapitalString()))
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (*lockedWriter) Sync() error { return nil }

// scrubbed is a core that scrubs the message and every text in the fields.
type scrubbed struct{ zapcore.Core }

func (s *scrubbed) With(fields []zapcore.Field) zapcore.Core {
	return &scrubbed{s.Core.With(scrubFields(fields))}
}

func (s *scrubbed) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if s.Enabled(e.Level) {
		return checked.AddCore(e, s)
	}
	return checked
}

func (s *scrubbed) Write(e zapcore.Entry, fields []zapcore.Field) error {
	e.Message = Scrub(e.Message)
	return s.Core.Write(e, scrubFields(fields))
}

func scrubFields(fields []zapcore.Field) []zapcore.Field {
	out := make([]zapcore.Field, len(fields))
	for i, f := range fields {
		out[i] = scrubField(f)
	}
	return out
}

func scrubField(f zapcore.Field) zapcore.Field {
	switch f.Type {
	case zapcore.StringType:
		f.String = Scrub(f.String)
	case zapcore.ErrorType:
		// As text: zap would add the %+v form of some errors beside it.
		if err, ok := f.Interface.(error); ok {
			return zap.String(f.Key, Scrub(errorText(err)))
		}
	case zapcore.StringerType:
		if s, ok := f.Interface.(fmt.Stringer); ok {
			return zap.String(f.Key, Scrub(stringerText(s)))
		}
	case zapcore.ReflectType:
		return zap.String(f.Key, Scrub(fmt.Sprint(f.Interface)))
	case zapcore.ArrayMarshalerType, zapcore.ObjectMarshalerType, zapcore.InlineMarshalerType, zapcore.ByteStringType:
		return scrubAny(f)
	}
	return f
}

// errorText and stringerText survive a nil pointer behind the interface.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "<nil>"
		}
	}()
	return err.Error()
}

func stringerText(s fmt.Stringer) (text string) {
	defer func() {
		if recover() != nil {
			text = "<nil>"
		}
	}()
	return s.String()
}

// scrubAny takes the rare composite fields apart.
func scrubAny(f zapcore.Field) zapcore.Field {
	enc := zapcore.NewMapObjectEncoder()
	f.AddTo(enc)
	if v, ok := enc.Fields[f.Key]; ok {
		return zap.Any(f.Key, scrubValue(v))
	}
	return zap.Any(f.Key, scrubValue(enc.Fields)) // inlined into the line
}

func scrubValue(v any) any {
	switch v := v.(type) {
	case string:
		return Scrub(v)
	case []any:
		for i := range v {
			v[i] = scrubValue(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = scrubValue(v[key])
		}
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
	default:
		return Scrub(fmt.Sprint(v))
	}
	return v
}
