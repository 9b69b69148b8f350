package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/walpost/walpost/internal/relay"
)

// probe answers with a status code and what becomes the body.
type probe func(r *http.Request) (code int, body any)

func (p probe) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, body := p(r)
	answer(w, code, body)
}

// quarkus turns an answer into the form of MicroProfile Health.
func (p probe) quarkus(r *http.Request) (int, any) {
	code, body := p(r)
	status := "UP"
	if code != http.StatusOK {
		status = "DOWN"
	}
	return code, map[string]any{"status": status, "checks": []any{
		map[string]any{"name": "walpost", "status": status, "data": body},
	}}
}

const locked = "status_locked"

func (s *Server) live(r *http.Request) (int, any) {
	err, ok := s.alive.get(r.Context())
	switch {
	case !ok:
		return http.StatusServiceUnavailable, map[string]any{"live": false, "reason": locked}
	case err != nil:
		return http.StatusServiceUnavailable, map[string]any{"live": false, "reason": err.Error()}
	}
	return http.StatusOK, map[string]any{"live": true}
}

// started is true as soon as somebody listens: the configuration was good.
func (s *Server) started(*http.Request) (int, any) {
	return http.StatusOK, map[string]any{"started": true}
}

// readiness is the body of /readyz. Detail and Hint may name a topic or an
// event, so that they are for this machine only.
type readiness struct {
	Ready     bool       `json:"ready"`
	State     string     `json:"state,omitempty"`
	Slot      string     `json:"slot,omitempty"`
	Reason    *string    `json:"reason"`
	Detail    *string    `json:"detail,omitempty"`
	Hint      *string    `json:"hint,omitempty"`
	HolderPID *int32     `json:"holder_pid,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
}

func (s *Server) ready(r *http.Request) (int, any) {
	snapshot, ok := s.snapshot.get(r.Context())
	if !ok {
		return http.StatusServiceUnavailable, readiness{Reason: text(locked)}
	}
	body := readiness{
		Ready: snapshot.Ready, State: string(snapshot.State), Slot: snapshot.SlotName,
		Reason: text(snapshot.Reason), Since: instant(snapshot.Since),
	}
	if r.URL.Query().Get("standby") == "ok" {
		body.Ready = snapshot.StandbyReady
	}
	if snapshot.State == relay.WaitingForSlot && snapshot.Slot != nil {
		body.HolderPID = snapshot.Slot.ActivePID
	}
	if !body.Ready && body.Reason == nil {
		body.Reason = text(string(snapshot.State))
	}
	if s.isLocal(r) {
		body.Detail, body.Hint = text(snapshot.Detail), text(snapshot.Hint)
	}
	if !body.Ready {
		return http.StatusServiceUnavailable, body
	}
	return http.StatusOK, body
}

func (s *Server) status(r *http.Request) (int, any) {
	if !s.isLocal(r) {
		return http.StatusForbidden, map[string]any{
			"error": "served to this machine only",
			"hint":  "ask http://localhost on the machine (or in the pod) itself, without a proxy, or run walpost status there",
		}
	}
	snapshot, ok := s.snapshot.get(r.Context())
	if !ok {
		return http.StatusServiceUnavailable, map[string]any{"error": locked}
	}
	return http.StatusOK, StatusFrom(snapshot)
}

// endpoints in the order in which they are listed to who asks for another.
func (s *Server) endpoints() []string {
	return []string{"/livez", "/readyz", "/startupz", "/metrics", "/status.json"}
}

// nothing answers every other path and method.
func (s *Server) nothing(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, map[string]any{"error": "only GET and HEAD are served"})
		return
	}
	answer(w, http.StatusNotFound, map[string]any{"error": "not found", "endpoints": s.endpoints()})
}

func answer(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":"cannot encode the answer"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n'))
}
