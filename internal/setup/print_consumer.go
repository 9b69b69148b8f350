package setup

import (
	"fmt"
	"strings"

	"github.com/walpost/walpost/outbox"
)

// consumerSQL is what a consumer keeps, as a script of its own.
func consumerSQL() (string, error) {
	statements, err := outbox.Statements(outbox.SchemaOptions{Parts: outbox.Consumption})
	if err != nil {
		return "", fmt.Errorf("write the consumer's tables: %w", err)
	}
	var b strings.Builder
	b.WriteString(`
-- What a consumer remembers, so that an event has its effect once. Run it in each
-- consumer's database, where the effects are: it need not be that of the outbox.
begin;
`)
	for _, statement := range statements {
		b.WriteString("\n" + statement + ";\n")
	}
	b.WriteString("\ncommit;\n")
	return b.String(), nil
}
