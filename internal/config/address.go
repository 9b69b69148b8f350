package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	defaultBrokerPort = "9092"
	brokerWay         = "write host:port, such as kafka-1:9092 or [::1]:9092"
)

func (l *loader) checkBrokers() {
	const name = "kafka.brokers"
	brokers := l.cfg.Kafka.Brokers
	if l.bad[name] {
		return
	}
	if len(brokers) == 0 {
		if l.needs(NeedSink) && l.cfg.Sink == SinkKafka {
			l.failAt(name, "at least one broker is required", "set --brokers or WALPOST_BROKERS to host:port")
		}
		return
	}
	for i, b := range brokers {
		address, bad := parseBroker(b)
		if bad != nil {
			l.failAt(name, bad.what, bad.way)
			continue
		}
		brokers[i] = address
	}
}

// parseBroker gives host:port. What may be a password is not quoted back.
func parseBroker(text string) (string, *fault) {
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		return "", &fault{fmt.Sprintf("a broker has no scheme such as %s://", scheme),
			brokerWay + "; TLS is kafka.tls.enabled, a login is kafka.sasl"}
	}
	if strings.ContainsAny(text, "@/ ") {
		return "", &fault{"a broker is a host and a port, nothing else", brokerWay + "; a login is kafka.sasl"}
	}
	if addr, err := netip.ParseAddr(text); err == nil && addr.Is6() {
		return "", &fault{quote(text) + " is an IPv6 address without brackets", "write [" + text + "]:" + defaultBrokerPort}
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port, err = net.SplitHostPort(text + ":" + defaultBrokerPort)
	}
	if err != nil || host == "" {
		return "", &fault{quote(text) + " is not a broker address", brokerWay}
	}
	if strings.Contains(host, ":") {
		if _, err := netip.ParseAddr(host); err != nil {
			return "", &fault{quote(text) + " is not a broker address", brokerWay}
		}
	}
	if !validPort(port, 1) {
		return "", &fault{quote(text) + " has no port from 1 to 65535", brokerWay}
	}
	return net.JoinHostPort(host, port), nil
}

func validPort(s string, least uint64) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n >= least
}

// checkListen turns "off" into "". Port 0 is allowed: the system chooses one.
func (l *loader) checkListen() {
	listen := &l.cfg.Admin.Listen
	if *listen == "" || strings.EqualFold(*listen, "off") {
		*listen = ""
		return
	}
	if _, port, err := net.SplitHostPort(*listen); err != nil || !validPort(port, 0) {
		l.failAt("admin.listen", quote(*listen)+" is not an address to listen on", "write :8642, 127.0.0.1:8642 or off")
	}
}
