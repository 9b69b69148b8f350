package connector

import (
	"fmt"
	"slices"
	"strings"
)

// secure says what security.protocol asks for.
func (r *reading) secure() (tls, sasl bool) {
	p := strings.ToUpper(r.producerValue("security.protocol", "PLAINTEXT"))
	return strings.HasSuffix(p, "SSL"), strings.HasPrefix(p, "SASL_")
}

// securityRules are about TLS and SASL to the brokers.
func securityRules() []rule {
	const goTLS = "walpost takes TLS 1.2 and later, with the ciphers that are safe today"
	const unused = "it belongs to another mechanism than PLAIN and SCRAM"
	const inline = "walpost reads certificates and keys from files"
	const class = "it names a Java class"
	return []rule{
		{key: "security.protocol", own: true, decide: decideProtocol},
		{key: "sasl.mechanism", own: true, decide: decideMechanism},
		{key: "sasl.jaas.config", own: true, decide: decideJAAS},
		{key: "sasl.login.callback.handler.class", decide: refuse(class, "remove it; walpost takes user and password from sasl.jaas.config")},
		{key: "sasl.client.callback.handler.class", decide: refuse(class, "remove it; walpost takes user and password from sasl.jaas.config")},
		{key: "sasl.login.class", decide: refuse(class, "remove it; walpost takes user and password from sasl.jaas.config")},
		{key: "sasl.*", decide: ignore(unused)},
		{key: "security.providers", decide: refuse(class, "remove it")},
		{key: "ssl.truststore.location", own: true, decide: decideTruststore},
		{key: "ssl.truststore.type", own: true, decide: decideStoreType},
		{key: "ssl.truststore.password", own: true, decide: ignore("a PEM file with certificates needs no password")},
		{key: "ssl.truststore.certificates", own: true, decide: refuse(inline, "write them into a file, and set ssl.truststore.type=PEM and ssl.truststore.location")},
		{key: "ssl.keystore.location", own: true, decide: decideKeystore},
		{key: "ssl.keystore.type", own: true, decide: decideStoreType},
		{key: "ssl.keystore.password", own: true, decide: ignore("a PEM file needs no password of a store")},
		{key: "ssl.keystore.certificate.chain", own: true, decide: refuse(inline, "write it into a file together with the key, and set ssl.keystore.type=PEM and ssl.keystore.location")},
		{key: "ssl.keystore.key", own: true, decide: refuse(inline, "write it into a file together with the certificate, and set ssl.keystore.type=PEM and ssl.keystore.location")},
		{key: "ssl.key.password", own: true, decide: decideKeyPassword},
		{key: "ssl.endpoint.identification.algorithm", own: true, decide: func(r *reading, s *setting) verdict {
			switch v := strings.TrimSpace(s.value); {
			case strings.EqualFold(v, "https"):
				return same("the brokers' names are verified")
			case v == "":
				return differs(Ignored, "the brokers' names are verified", "Debezium takes a certificate of any name",
					"set kafka.tls.server_name if the certificates have another name than the brokers")
			default:
				return malformed(s, "write https")
			}
		}},
		{key: "ssl.protocol", decide: ignore(goTLS)},
		{key: "ssl.enabled.protocols", decide: ignore(goTLS)},
		{key: "ssl.cipher.suites", decide: ignore(goTLS)},
		{key: "ssl.provider", decide: ignore(goTLS)},
		{key: "ssl.keymanager.algorithm", decide: ignore(goTLS)},
		{key: "ssl.trustmanager.algorithm", decide: ignore(goTLS)},
		{key: "ssl.secure.random.implementation", decide: ignore(goTLS)},
		{key: "ssl.engine.factory.class", decide: refuse(class, "remove it")},
	}
}

func decideProtocol(r *reading, s *setting) verdict {
	v := oneOf([]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, "TLS and SASL to the brokers", func(r *reading, v string) {
		r.honour("security.protocol", s, "")
	})(r, s)
	if v.severity == SeverityRefused {
		return v
	}
	tls, sasl := r.secure()
	r.over("kafka.tls.enabled", fmt.Sprint(tls), s)
	if !sasl {
		return v
	}
	mechanism := r.producerValue("sasl.mechanism", "")
	if mechanism == "" {
		return refused("SASL without sasl.mechanism means GSSAPI, which walpost does not have", "add sasl.mechanism=PLAIN or SCRAM-SHA-512, and sasl.jaas.config")
	}
	if r.producer("sasl.jaas.config") == nil {
		return refused("SASL without sasl.jaas.config: no user is named", "add sasl.jaas.config beside it")
	}
	if mechanism == "PLAIN" && !tls {
		r.over("kafka.sasl.allow_plaintext", "true", s)
		return noted(v.does+"; the password travels in the clear, as with Debezium", "")
	}
	return v
}

func decideMechanism(r *reading, s *setting) verdict {
	if _, sasl := r.secure(); !sasl {
		return ignored("security.protocol is without SASL")
	}
	v := strings.ToUpper(strings.TrimSpace(s.value))
	if !slices.Contains([]string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}, v) {
		return refused("walpost has PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512", "make a user of one of these mechanisms for walpost")
	}
	r.over("kafka.sasl.mechanism", v, s)
	return r.honour("sasl.mechanism", s, "SASL mechanism")
}

func decideJAAS(r *reading, s *setting) verdict {
	if _, sasl := r.secure(); !sasl {
		return ignored("security.protocol is without SASL")
	}
	const way = `write org.apache.kafka.common.security.scram.ScramLoginModule required username="…" password="…"; or the PlainLoginModule`
	j, ok := parseJAAS(s.value)
	if !ok {
		return refused("it is not the entry of one login module", way)
	}
	mechanism := strings.ToUpper(r.producerValue("sasl.mechanism", ""))
	want := "PlainLoginModule"
	if strings.HasPrefix(mechanism, "SCRAM-") {
		want = "ScramLoginModule"
	}
	if short(j.module) != want {
		return refused("its login module does not fit sasl.mechanism, which needs "+want, way)
	}
	if j.options["tokenauth"] == "true" {
		return refused("walpost has no delegation tokens", "make a user with a password for walpost")
	}
	user, password := j.options["username"], j.options["password"]
	if user == "" || password == "" {
		return refused("it has no username, or no password", way)
	}
	r.over("kafka.sasl.username", user, s).Secret = false
	r.over("kafka.sasl.password", password, s).Secret = true
	return same("SASL user and password")
}

const keyTool = "export it: keytool -list -rfc -keystore %[1]s > %[1]s.pem; then set ssl.truststore.type=PEM and ssl.truststore.location=%[1]s.pem"

func decideTruststore(r *reading, s *setting) verdict {
	if tls, _ := r.secure(); !tls {
		return ignored("security.protocol is without TLS")
	}
	file := strings.TrimSpace(s.value)
	if kind := strings.ToUpper(r.producerValue("ssl.truststore.type", "JKS")); kind != "PEM" {
		return refused("the truststore is of type "+kind+", and walpost reads PEM", fmt.Sprintf(keyTool, file))
	}
	r.over("kafka.tls.ca_file", file, s)
	return r.honour("ssl.truststore.location", s, "certificate authorities")
}

func decideKeystore(r *reading, s *setting) verdict {
	if tls, _ := r.secure(); !tls {
		return ignored("security.protocol is without TLS")
	}
	file := strings.TrimSpace(s.value)
	if kind := strings.ToUpper(r.producerValue("ssl.keystore.type", "JKS")); kind != "PEM" {
		from := file
		way := "export it: "
		if kind == "JKS" {
			way += fmt.Sprintf("keytool -importkeystore -srckeystore %[1]s -destkeystore %[1]s.p12 -deststoretype PKCS12; ", file)
			from += ".p12"
		}
		way += fmt.Sprintf("openssl pkcs12 -in %s -nodes -out %[2]s.pem; then set ssl.keystore.type=PEM and ssl.keystore.location=%[2]s.pem", from, file)
		return refused("the keystore is of type "+kind+", and walpost reads PEM", way)
	}
	r.over("kafka.tls.cert_file", file, s)
	r.over("kafka.tls.key_file", file, s)
	return r.honour("ssl.keystore.location", s, "client certificate and key")
}

func decideStoreType(r *reading, s *setting) verdict {
	if !slices.Contains([]string{"PEM", "JKS", "PKCS12"}, strings.ToUpper(strings.TrimSpace(s.value))) {
		return refused("walpost reads PEM", "export the store as PEM")
	}
	if tls, _ := r.secure(); !tls {
		return ignored("security.protocol is without TLS")
	}
	return same("type of the store")
}

func decideKeyPassword(r *reading, s *setting) verdict {
	if tls, _ := r.secure(); !tls || r.producer("ssl.keystore.location") == nil {
		return ignored("no client key is in use")
	}
	if !strings.EqualFold(r.producerValue("ssl.keystore.type", "JKS"), "PEM") {
		return ignored("it belongs to the keystore")
	}
	file := r.producerValue("ssl.keystore.location", "")
	return refused("the client key is encrypted, and walpost reads keys in the clear",
		fmt.Sprintf("decrypt it: openssl pkcs8 -in %[1]s -out %[1]s.key; put the certificate before it, in a file that walpost alone can read", file))
}
