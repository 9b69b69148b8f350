package connector

import (
	"regexp"

	"github.com/walpost/walpost/internal/config"
)

// secretName is how keys, variables and files with something secret are called;
// it takes misspelt passwords too.
var secretName = regexp.MustCompile(`(?i)pas+w|pass(phrase)?$|pwd|secret|token|jaas|credential|api[._-]?key|user\.info|(^|[._-])(private|access)[._-]key|keystore\.key$`)

// notSecret are keys that only look like one.
var notSecret = regexp.MustCompile(`(?i)\.(location|type|algorithm|class)$|token\.endpoint`)

func isSecretName(name string) bool {
	return secretName.MatchString(name) && !notSecret.MatchString(name)
}

// userInfo is the user and password in a URL.
var userInfo = regexp.MustCompile(`(://)[^/@\s]*@`)

// show gives a value for people, masked if it is a secret.
func (s *setting) show() string {
	if s.value == "" {
		return s.value
	}
	if s.secret {
		return config.Masked
	}
	return userInfo.ReplaceAllString(s.value, "${1}"+config.Masked+"@")
}
