package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

var errNoCertificate = errors.New("no certificate in it")

// ClientConfig is what connections to the brokers use; nil when TLS is not
// enabled. The client certificate is read again at every connection, so that
// one which is replaced in time never expires in use.
func (t *TLS) ClientConfig(readFile func(string) ([]byte, error)) (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.InsecureSkipVerify,
	}
	if t.CAFile != "" {
		pool, err := readAuthorities(readFile, t.CAFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if t.CertFile != "" {
		certFile, keyFile := t.CertFile, t.KeyFile
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return readPair(readFile, certFile, keyFile)
		}
	}
	return c, nil
}

func readAuthorities(readFile func(string) ([]byte, error), path string) (*x509.CertPool, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("read %s: %w", path, errNoCertificate)
	}
	return pool, nil
}

func readPair(readFile func(string) ([]byte, error), certFile, keyFile string) (*tls.Certificate, error) {
	cert, err := readFile(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(keyFile)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s and key %s do not make a pair: %w", certFile, keyFile, err)
	}
	return &pair, nil
}

// checkTLS also reads the files: a missing or mixed-up certificate is better
// found here than at the first connection.
func (l *loader) checkTLS() {
	t := &l.cfg.Kafka.TLS
	if l.bad["kafka.tls.enabled"] {
		return
	}
	if !t.Enabled {
		l.checkTLSUnused(t)
		return
	}
	if t.InsecureSkipVerify {
		l.warn("the brokers' certificates are not verified", "remove kafka.tls.insecure_skip_verify and name the authority with kafka.tls.ca_file")
	}
	if t.CAFile != "" && !l.bad["kafka.tls.ca_file"] {
		if _, err := readAuthorities(l.src.ReadFile, t.CAFile); err != nil {
			l.failAt("kafka.tls.ca_file", fileFault(err), "name a readable PEM file that begins with -----BEGIN CERTIFICATE-----")
		}
	}
	switch {
	case l.bad["kafka.tls.cert_file"] || l.bad["kafka.tls.key_file"]:
	case t.CertFile != "" && t.KeyFile == "":
		l.failAt("kafka.tls.cert_file", "set, but kafka.tls.key_file is not", "name the file with the certificate's key")
	case t.CertFile == "" && t.KeyFile != "":
		l.failAt("kafka.tls.key_file", "set, but kafka.tls.cert_file is not", "name the file with the key's certificate")
	case t.CertFile != "":
		if _, err := readPair(l.src.ReadFile, t.CertFile, t.KeyFile); err != nil {
			l.failAt("kafka.tls.cert_file", fileFault(err),
				"cert_file holds the client's certificate first, then its chain; key_file its key, not encrypted; both as PEM")
		}
	}
}

func (l *loader) checkTLSUnused(t *TLS) {
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"kafka.tls.ca_file", t.CAFile != ""},
		{"kafka.tls.cert_file", t.CertFile != ""},
		{"kafka.tls.key_file", t.KeyFile != ""},
		{"kafka.tls.server_name", t.ServerName != ""},
		{"kafka.tls.insecure_skip_verify", t.InsecureSkipVerify},
	} {
		if option.set && !l.bad[option.name] {
			l.failAt(option.name, "set, but kafka.tls.enabled is not", "set kafka.tls.enabled, or remove this")
		}
	}
}
