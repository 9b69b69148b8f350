package outboxkafka

import "sync"

// marks holds, for each partition, the offset after the last event that has been
// dealt with and whose commit is outstanding. Lanes write, the generation takes.
type marks struct {
	mu      sync.Mutex
	offsets map[string]map[int]int64
}

func newMarks() *marks { return &marks{offsets: map[string]map[int]int64{}} }

// set is called when everything below next has been dealt with, and never before.
func (m *marks) set(topic string, partition int, next int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offsets[topic] == nil {
		m.offsets[topic] = map[int]int64{}
	}
	m.offsets[topic][partition] = max(next, m.offsets[topic][partition])
}

func (m *marks) take() map[string]map[int]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.offsets
	m.offsets = map[string]map[int]int64{}
	return taken
}

func (m *marks) giveBack(offsets map[string]map[int]int64) {
	for topic, partitions := range offsets {
		for partition, next := range partitions {
			m.set(topic, partition, next)
		}
	}
}
