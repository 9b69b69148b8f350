package outboxprom_test

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/walpost/walpost/outbox"
	"github.com/walpost/walpost/outbox/outboxprom"
)

func ExampleMetrics() {
	reg := prometheus.NewRegistry()
	metrics, err := outboxprom.New(reg)
	if err != nil {
		fmt.Println(err)
		return
	}
	// In a service: outbox.ConsumerOptions{Name: "billing", Observe: metrics.Observe}
	// and, beside it, go metrics.Poll(ctx, "billing", consumer, 0).
	metrics.Observe(outbox.Result{Consumer: "billing", Outcome: outbox.Applied, Attempts: 1})
	metrics.Observe(outbox.Result{Consumer: "billing", Outcome: outbox.Duplicate})
	families, err := reg.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		if f.GetName() == "walpost_consumer_messages_total" {
			for _, metric := range f.GetMetric() {
				fmt.Println(metric.GetLabel()[1].GetValue(), metric.GetCounter().GetValue())
			}
		}
	}
	// Output:
	// applied 1
	// duplicate 1
}
