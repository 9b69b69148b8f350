package sink

import (
	"math/rand/v2"
	"testing"

	"github.com/segmentio/kafka-go"
)

// The vectors are those of Kafka's own UtilsTest.
func TestMurmur2(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(data))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", data, got, want)
		}
	}
}

func TestPartitionOfAgreesWithJavaCompatibleBalancer(t *testing.T) {
	t.Parallel()
	balancer := kafka.Murmur2Balancer{Consistent: true} // a nil key counts as empty
	random := rand.New(rand.NewPCG(1, 2))
	for _, partitions := range []int{1, 2, 7, 12, 48, 5000} {
		ids := make([]int, partitions)
		for i := range ids {
			ids[i] = i
		}
		keys := [][]byte{nil, {}, {0}, {0xff}}
		for range 2000 {
			key := make([]byte, random.IntN(70))
			for i := range key {
				key[i] = byte(random.Uint32())
			}
			keys = append(keys, key)
		}
		for _, key := range keys {
			got, want := partitionOf(key, partitions), balancer.Balance(kafka.Message{Key: key}, ids...)
			if int(got) != want {
				t.Fatalf("partitionOf(%x, %d) = %d, want %d", key, partitions, got, want)
			}
		}
	}
}
