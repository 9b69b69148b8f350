package contract

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walpost/walpost/internal/testkit"
)

// evict takes the members out of the group whose processes are dead. The broker
// would wait for their session timeouts.
func (a *arena) evict() {
	a.t.Helper()
	testkit.Await(a.t, "an empty group", func() bool {
		state, members := a.describe()
		if len(members) == 0 {
			return state == "Empty" || state == "Dead"
		}
		request := kmsg.NewPtrLeaveGroupRequest()
		request.Group = a.name
		for _, m := range members {
			leaving := kmsg.NewLeaveGroupRequestMember()
			leaving.MemberID = m
			request.Members = append(request.Members, leaving)
		}
		_, err := request.RequestWith(a.t.Context(), a.kafka)
		if err != nil {
			a.t.Log(err) // and again
		}
		return false
	})
}

func (a *arena) describe() (state string, members []string) {
	a.t.Helper()
	request := kmsg.NewPtrDescribeGroupsRequest()
	request.Groups = []string{a.name}
	response, err := request.RequestWith(a.t.Context(), a.kafka)
	if err != nil || len(response.Groups) != 1 {
		a.t.Fatalf("describe the group: %v", err)
	}
	for _, m := range response.Groups[0].Members {
		members = append(members, m.MemberID)
	}
	return response.Groups[0].State, members
}

// forget deletes the group, and with it its offsets.
func (a *arena) forget() {
	a.t.Helper()
	a.evict()
	request := kmsg.NewPtrDeleteGroupsRequest()
	request.Groups = []string{a.name}
	response, err := request.RequestWith(a.t.Context(), a.kafka)
	if err != nil || len(response.Groups) != 1 {
		a.t.Fatalf("delete the group: %v", err)
	}
	if err := kerr.ErrorForCode(response.Groups[0].ErrorCode); err != nil {
		a.t.Fatalf("delete the group: %v", err)
	}
}

// committed is of how many records the group has committed the offset. Offsets
// alone do not say it: a transaction's end takes one, too.
func (a *arena) committed() int {
	a.t.Helper()
	request := kmsg.NewPtrOffsetFetchRequest()
	request.Group = a.name
	wanted := kmsg.NewOffsetFetchRequestTopic()
	wanted.Topic = a.topic
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = a.name
	inGroup := kmsg.NewOffsetFetchRequestGroupTopic()
	inGroup.Topic = a.topic
	for p := range int32(partitions) {
		wanted.Partitions = append(wanted.Partitions, p)
		inGroup.Partitions = append(inGroup.Partitions, p)
	}
	request.Topics = append(request.Topics, wanted)
	group.Topics = append(group.Topics, inGroup)
	request.Groups = append(request.Groups, group)
	response, err := request.RequestWith(a.t.Context(), a.kafka)
	if err != nil {
		a.t.Fatalf("fetch the group's offsets: %v", err)
	}
	next, err := offsets(response)
	if err != nil {
		a.t.Fatalf("fetch the group's offsets: %v", err)
	}
	total := 0
	for _, r := range a.records() {
		if r.Offset < next[r.Partition] {
			total++
		}
	}
	return total
}

// offsets are the partitions' next ones. The newer form of the response has groups,
// the older one topics.
func offsets(response *kmsg.OffsetFetchResponse) (map[int]int64, error) {
	next := map[int]int64{}
	errs := []error{kerr.ErrorForCode(response.ErrorCode)}
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			next[int(p.Partition)] = p.Offset
			errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	for _, g := range response.Groups {
		errs = append(errs, kerr.ErrorForCode(g.ErrorCode))
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				next[int(p.Partition)] = p.Offset
				errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	return next, errors.Join(errs...)
}
