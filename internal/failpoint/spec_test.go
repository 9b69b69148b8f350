package failpoint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]spec{
		"":  {},
		";": {},
		"sink.after-send=crash@3;checkpoint.before-save=fail": {
			"sink.after-send":        {action: crash, nth: 3},
			"checkpoint.before-save": {action: fail},
		},
		" sink.in-tail=stall ; relay.drained=crash ": {
			"sink.in-tail":  {action: stall},
			"relay.drained": {action: crash},
		},
		"sink.in-tail=stall:/tmp/a:b@2":   {"sink.in-tail": {action: stall, until: "/tmp/a:b", nth: 2}},
		"sink.in-tail=stall:/tmp/a@7/b":   {"sink.in-tail": {action: stall, until: "/tmp/a@7/b"}},
		"sink.in-tail=stall:/tmp/a@7/b@9": {"sink.in-tail": {action: stall, until: "/tmp/a@7/b", nth: 9}},
	} {
		got, err := parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(spec{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sink.after-send":                            `WALPOST_FAILPOINTS: "sink.after-send": nothing says what is to happen there`,
		"sink.after-snd=crash":                       `WALPOST_FAILPOINTS: "sink.after-snd=crash": there is no point "sink.after-snd"`,
		"=crash":                                     `WALPOST_FAILPOINTS: "=crash": there is no point ""`,
		"sink.after-send=":                           `WALPOST_FAILPOINTS: "sink.after-send=": "" is not an action`,
		"sink.after-send=crsh":                       `WALPOST_FAILPOINTS: "sink.after-send=crsh": "crsh" is not an action`,
		"sink.after-send=crash@":                     `WALPOST_FAILPOINTS: "sink.after-send=crash@": "" is not a number from 1 on`,
		"sink.after-send=crash@0":                    `WALPOST_FAILPOINTS: "sink.after-send=crash@0": "0" is not a number from 1 on`,
		"sink.after-send=crash@two":                  `WALPOST_FAILPOINTS: "sink.after-send=crash@two": "two" is not a number from 1 on`,
		"sink.after-send=crash:/tmp/x":               `WALPOST_FAILPOINTS: "sink.after-send=crash:/tmp/x": crash takes no file`,
		"sink.after-send=stall:":                     `WALPOST_FAILPOINTS: "sink.after-send=stall:": the file's name is missing`,
		"sink.before-settle=fail":                    `WALPOST_FAILPOINTS: "sink.before-settle=fail": nothing can fail at "sink.before-settle"`,
		"sink.in-tail=crash@1;sink.in-tail=crash@2":  `WALPOST_FAILPOINTS: "sink.in-tail=crash@2": point "sink.in-tail" is given twice`,
		"sink.in-tail=crash, relay.drained=crash":    `WALPOST_FAILPOINTS: "sink.in-tail=crash, relay.drained=crash": "crash, relay.drained=crash" is not an action`,
		"sink.in-tail=crash@99999999999999999999999": `WALPOST_FAILPOINTS: "sink.in-tail=crash@99999999999999999999999": "99999999999999999999999" is not a number from 1 on`,
	} {
		specs, err := parse(text)
		if err == nil {
			t.Errorf("%q was taken: %v", text, specs)
			continue
		}
		if err.Error() != want {
			t.Errorf("%q:\n got %s\nwant %s", text, err, want)
		}
		hint, ok := err.(interface{ Hint() string })
		if !ok || !strings.Contains(hint.Hint(), "relay.drained") {
			t.Errorf("%q: the hint does not name the points", text)
		}
	}
}
