package connector

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// The classes that are meant, and how Connect lets them be abbreviated.
var (
	connectorClasses = []string{"io.debezium.connector.postgresql.PostgresConnector", "PostgresConnector", "Postgres"}
	topicPrefixForm  = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// identityRules name the connector.
func identityRules() []rule {
	return []rule{
		{key: "name", decide: text("the connector's name, by which its stored offset is found", func(r *reading, v string) { r.spec.Name = v })},
		{key: "connector.class", show: true, own: true, decide: decideClass},
		{key: "topic.prefix", show: true, decide: decideTopicPrefix},
	}
}

func decideClass(r *reading, s *setting) verdict {
	class := strings.TrimSpace(s.value)
	for _, ours := range connectorClasses {
		if class == ours {
			return same("the PostgreSQL connector")
		}
	}
	if class == "" {
		return refused("not set: it is not certain that this is a connector for PostgreSQL", "add connector.class="+connectorClasses[0])
	}
	return refused("walpost stands in for Debezium's PostgreSQL connector alone", "name the configuration of a "+connectorClasses[0])
}

func decideTopicPrefix(r *reading, s *setting) verdict {
	v := strings.TrimSpace(s.value)
	if !s.set {
		return refused("not set, and Debezium has no default", "add topic.prefix; Debezium 1.x called it database.server.name")
	}
	if !topicPrefixForm.MatchString(v) {
		return malformed(s, "use letters, digits, dots, hyphens and underscores")
	}
	r.spec.Router.TopicPrefix = v
	return same("the first context header, the heartbeat topic, and the names of schemas")
}

// databaseRules say how to connect.
func databaseRules() []rule {
	const pooled = "walpost sets its own limits on connections"
	return []rule{
		{key: "database.hostname", show: true, own: true, decide: required("server", "add database.hostname", func(r *reading, v string) { r.spec.Database.Hostname = v })},
		{key: "database.port", def: "5432", own: true, decide: decidePort},
		{key: "database.user", show: true, own: true, decide: required("user", "add database.user", func(r *reading, v string) { r.spec.Database.User = v })},
		{key: "database.password", own: true, decide: func(r *reading, s *setting) verdict {
			r.spec.Database.Password = s.value
			return same("password")
		}},
		{key: "database.dbname", show: true, own: true, decide: required("database", "add database.dbname", func(r *reading, v string) { r.spec.Database.Name = v })},
		{key: "database.sslmode", def: "prefer", own: true, decide: decideSSLMode},
		{key: "database.sslrootcert", own: true, decide: pemFile("certificate authority", "openssl x509 -inform DER -in %[1]s -out %[1]s.pem",
			func(r *reading, v string) { r.spec.Database.SSLRootCert = v })},
		{key: "database.sslcert", own: true, decide: pemFile("client certificate", "openssl x509 -inform DER -in %[1]s -out %[1]s.pem",
			func(r *reading, v string) { r.spec.Database.SSLCert = v })},
		{key: "database.sslkey", own: true, decide: pemFile("client key", "openssl pkcs8 -inform DER -in %[1]s -out %[1]s.pem",
			func(r *reading, v string) { r.spec.Database.SSLKey = v })},
		{key: "database.sslpassword", own: true, decide: func(r *reading, s *setting) verdict {
			r.spec.Database.SSLPassword = s.value
			return same("password of the client key")
		}},
		{key: "database.sslfactory", own: true, decide: refuseUnless([]string{""},
			"a Java class makes the TLS connection", "remove it, and use database.sslmode, sslrootcert, sslcert and sslkey")},
		{key: "database.tcpKeepAlive", def: "true", own: true, decide: func(r *reading, s *setting) verdict {
			v, way := parseBool(s)
			if way != "" {
				return malformed(s, way)
			}
			r.spec.Database.KeepAlive = v
			if !v {
				return differs(Ignored, "walpost always asks for TCP keep-alives", "probes are sent where Debezium sends none", "")
			}
			return same("TCP keep-alives")
		}},
		{key: "database.initial.statements", own: true, decide: refuseUnless([]string{""},
			"walpost runs no statements of yours on its connections", "set them for the user: alter role … in database … set name = value")},
		{key: "database.connection.factory.class", own: true, decide: refuseUnless([]string{""},
			"a Java class makes the connection", "remove it")},
		{key: "database.query.timeout.ms", decide: ignore(pooled)},
		{key: "database.ApplicationName", decide: ignore("walpost names its connections after itself and the slot")},
		{key: "database.connectTimeout", decide: ignore(pooled)},
		{key: "database.loginTimeout", decide: ignore(pooled)},
		{key: "database.socketTimeout", decide: ignore(pooled)},
		{key: "connection.validation.timeout.ms", decide: ignore(pooled)},
	}
}

func decidePort(r *reading, s *setting) verdict {
	n, way := parseInt(s, 1)
	if way == "" && n > 65535 {
		way = "write a port, at most 65535"
	}
	if way != "" {
		return malformed(s, way)
	}
	r.spec.Database.Port = n
	return same("port")
}

func decideSSLMode(r *reading, s *setting) verdict {
	modes := []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
	v := oneOf(modes, "TLS to PostgreSQL", func(r *reading, v string) { r.spec.Database.SSLMode = v })(r, s)
	if r.spec.Database.SSLMode == "require" && r.set("database.sslrootcert") {
		v.severity = SeverityNote
		v.difference = "with database.sslrootcert set, the server's certificate is verified, as libpq does it; the Java driver does not"
	}
	return v
}

// pemFile takes the name of a file, which must be PEM: the Java driver reads DER
// as well.
func pemFile(what, convert string, put func(r *reading, v string)) decide {
	return func(r *reading, s *setting) verdict {
		name := strings.TrimSpace(s.value)
		der := path.Ext(name) == ".pk8" || path.Ext(name) == ".der" || path.Ext(name) == ".p12" || path.Ext(name) == ".pfx"
		if data, err := r.opt.ReadFile(name); err == nil {
			der = !strings.Contains(string(data), "-----BEGIN ")
		}
		if der {
			return refused("the file is not PEM, and walpost reads PEM alone", fmt.Sprintf("convert it: "+convert+", and name the result", name))
		}
		put(r, name)
		return same(what)
	}
}
