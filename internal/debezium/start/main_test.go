package start

import (
	"testing"

	"github.com/walpost/walpost/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
