// Package certs makes a certificate authority with one server and one client
// certificate, for the TLS listeners of test servers.
//
// The files are PEM; keys are PKCS#8. They are valid for 127.0.0.1 and localhost.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files names what Write has written.
type Files struct {
	CA                    string
	ServerCert, ServerKey string
	ServerPEM             string // key and certificate together, as Kafka wants them
	ClientCert, ClientKey string
}

type pair struct {
	cert *x509.Certificate
	der  []byte
	key  *ecdsa.PrivateKey
}

// Write makes the certificates and writes them into a folder. clientName is the
// common name of the client certificate.
func Write(dir, clientName string) (*Files, error) {
	ca, err := sign("walpost test CA", nil)
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	server, err := sign("localhost", ca)
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	client, err := sign(clientName, ca)
	if err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	files := &Files{
		CA:         at("ca.pem"),
		ServerCert: at("server.crt"), ServerKey: at("server.key"), ServerPEM: at("server.pem"),
		ClientCert: at("client.crt"), ClientKey: at("client.key"),
	}
	serverKey, err := server.keyPEM()
	if err != nil {
		return nil, err
	}
	clientKey, err := client.keyPEM()
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		files.CA:         ca.certPEM(),
		files.ServerCert: server.certPEM(),
		files.ServerKey:  serverKey,
		files.ServerPEM:  append(append([]byte{}, serverKey...), server.certPEM()...),
		files.ClientCert: client.certPEM(),
		files.ClientKey:  clientKey,
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, fmt.Errorf("write certificates: %w", err)
		}
	}
	return files, nil
}

// sign makes a key with a certificate signed by ca, or by itself without one.
func sign(name string, ca *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(10 * 365 * 24 * time.Hour),
	}
	parent, parentKey := cert, key
	if ca == nil {
		cert.IsCA = true
		cert.BasicConstraintsValid = true
		cert.KeyUsage = x509.KeyUsageCertSign
	} else {
		parent, parentKey = ca.cert, ca.key
		cert.KeyUsage = x509.KeyUsageDigitalSignature
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		cert.DNSNames = []string{"localhost"}
		cert.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	return &pair{cert: cert, der: der, key: key}, nil
}

func (p *pair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.der})
}

func (p *pair) keyPEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
