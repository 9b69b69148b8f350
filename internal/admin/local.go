package admin

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// forwarded are the headers by which a proxy says that it asks for somebody
// else. A sidecar asks from this machine, too.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"}

// isLocal says that the client is on this machine: it comes from a loopback
// address, or from the very address that it asked. A page in a browser here can
// be made to ask as well, by a name that its author lets point here (DNS
// rebinding), so that the name asked for matters, too.
func (s *Server) isLocal(r *http.Request) bool {
	for _, name := range forwarded {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	from, ok := parseAddr(r.RemoteAddr)
	if !ok {
		return false
	}
	if !from.IsLoopback() {
		asked, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if asked == nil {
			return false
		}
		if to, ok := parseAddr(asked.String()); !ok || to != from {
			return false
		}
	}
	return s.isOwnName(r.Host)
}

// isOwnName: an address, localhost, or the name that is configured.
func (s *Server) isOwnName(hostport string) bool {
	host := hostOf(hostport)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	configured := hostOf(s.opt.Listen)
	return strings.EqualFold(host, "localhost") || configured != "" && strings.EqualFold(host, configured)
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func parseAddr(hostport string) (netip.Addr, bool) {
	a, err := netip.ParseAddrPort(hostport)
	return a.Addr().Unmap(), err == nil
}
