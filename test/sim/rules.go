package sim

import (
	"fmt"
	"time"
)

// A rule is a fault that is in force for some time, for the requests that it
// matches.
type rule struct {
	keys   []int16 // API keys; empty: all but the handshake
	broker int32   // -1: any
	topic  string  // of the produced partition; empty: any
	number int32   // -1: any

	loseRequest  bool          // the connection breaks before the broker has the request
	loseResponse bool          // it breaks after the broker has done its work
	half         bool          // with loseResponse: after half of the answer
	delay        time.Duration // the broker takes it up only then
	slow         time.Duration // the broker answers only then
	code         int16         // per produced partition, or for the coordinator
	stored       bool          // with code: although the batch was appended
}

func (r *rule) String() string { return fmt.Sprintf("%+v", *r) }

func (r *rule) matches(key int16, broker int32) bool {
	if r.broker >= 0 && r.broker != broker {
		return false
	}
	if len(r.keys) == 0 {
		return key != keyAPIVersions
	}
	for _, k := range r.keys {
		if k == key {
			return true
		}
	}
	return false
}

func (r *rule) at(topic string, number int32) bool {
	return (r.topic == "" || r.topic == topic) && (r.number < 0 || r.number == number)
}
