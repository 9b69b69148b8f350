package e2e

import (
	"testing"

	"github.com/walpost/walpost/internal/admin"
	"github.com/walpost/walpost/internal/testkit"
	"github.com/walpost/walpost/internal/testkit/kafkaserver"
)

// TestDebeziumMissingTopic: a broker that makes topics which are asked for does
// so for a connector's configuration, as for Debezium. walpost's own does not ask.
func TestDebeziumMissingTopic(t *testing.T) {
	t.Parallel()
	cluster := testkit.PrivateKafka(t, kafkaserver.Options{AutoCreateTopics: true})
	o := bareDebezium(t, testkit.Postgres(t, kafkaMajor).NewDB(t))
	o.brokers = cluster.Addr()
	o.debeziumRows(1, 100, 7)
	own := o.start()
	own.await("the missing topic", func(s admin.Status) bool { return s.Reason != nil && *s.Reason == "topic_missing" })
	own.kill()
	o.awaitSlotFree()
	connector, worker := o.connectorFiles(nil)
	r := o.runDebezium(connector, worker, "--snapshot", "none")
	o.awaitConfirmed()
	r.stop()
	if repeats := checkNumbers(t, o.read("order"), 100); repeats != 0 {
		t.Errorf("%d repeats", repeats)
	}
}
