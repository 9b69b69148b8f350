package drill

import "fmt"

// Check is something that had to hold.
type Check struct {
	Must     string `json:"must"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Held     bool   `json:"held"`
}

// Report is the outcome of a drill.
type Report struct {
	Drill    string            `json:"drill"`
	Name     string            `json:"name"` // of schema, publication and slot
	Topic    string            `json:"topic"`
	Kept     bool              `json:"kept"`
	Seconds  float64           `json:"seconds"`
	Checks   []Check           `json:"checks"`
	Observed map[string]string `json:"observed"`
}

// Held says whether everything held.
func (r *Report) Held() bool {
	for _, c := range r.Checks {
		if !c.Held {
			return false
		}
	}
	return len(r.Checks) > 0
}

// equal adds a check that want was seen.
func (r *Report) equal(must string, want, seen any) {
	r.Checks = append(r.Checks, Check{must, fmt.Sprint(want), fmt.Sprint(seen), fmt.Sprint(want) == fmt.Sprint(seen)})
}

func (r *Report) observe(what string, value any) {
	if r.Observed == nil {
		r.Observed = map[string]string{}
	}
	r.Observed[what] = fmt.Sprint(value)
}
