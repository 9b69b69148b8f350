package pgserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options says what server to start.
type Options struct {
	// Major is the major version; 0 takes the newest installed one, and if none
	// is installed the newest that there is.
	Major int
	// Settings are added to postgresql.conf and win over our own.
	Settings map[string]string
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// FsyncOff makes the server faster and its data worthless after a crash of
	// the machine (not of the server).
	FsyncOff bool
	// Password makes TCP connections need it (SCRAM) for the superuser; without
	// it everybody is trusted. The unix socket always trusts.
	Password string
	// TLS offers TLS; see Server.CAFile.
	TLS bool
	// FreshIdentity gives the server a system identifier of its own.
	FreshIdentity bool
	// Log receives what is worth saying; nil drops it.
	Log func(format string, args ...any)
}

// Superuser is the name of the superuser.
const Superuser = "postgres"

// Mode is a way to stop a server.
type Mode string

// The ways to stop. Smart waits until all clients have gone, fast waits only
// until replication clients have received everything, immediate does not wait
// and leaves a crash recovery to the next start.
const (
	Smart     Mode = "smart"
	Fast      Mode = "fast"
	Immediate Mode = "immediate"
)

// config returns the content of the included configuration file.
func (s *Server) config() string {
	settings := map[string]string{
		"listen_addresses":          "127.0.0.1",
		"port":                      fmt.Sprint(s.port),
		"unix_socket_directories":   s.dir.Path,
		"wal_level":                 "logical",
		"max_replication_slots":     "200",
		"max_wal_senders":           "200",
		"max_connections":           "300",
		"max_prepared_transactions": "20",
		"timezone":                  "UTC",
		"log_timezone":              "UTC",
		"log_line_prefix":           "%m [%p] %q%a@%d ",
		"hba_file":                  s.path("pg_hba.conf"),
	}
	if s.opts.FsyncOff {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	if s.certs != nil {
		settings["ssl"] = "on"
		settings["ssl_cert_file"] = s.certs.ServerCert
		settings["ssl_key_file"] = s.certs.ServerKey
	}
	maps.Copy(settings, s.opts.Settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	return b.String()
}

func (s *Server) hba() string {
	method := "trust"
	if s.opts.Password != "" {
		method = "scram-sha-256"
	}
	return "local all all trust\n" +
		"local replication all trust\n" +
		"host all all 127.0.0.1/32 " + method + "\n" +
		"host replication all 127.0.0.1/32 " + method + "\n"
}
