package contract

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkOutbox looks at what the writers committed.
func (a *arena) checkOutbox() error {
	var errs []error
	for _, check := range []struct{ wrong, sql string }{
		{
			"rolled-back transactions have left events: insert the event in the transaction, on its connection",
			`select 'n = ' || (payload->>'n') from outbox_events where (payload->>'n')::bigint % 10 = 9`,
		},
		{
			"deposits have no event, or several",
			`select 'n = ' || i || ': ' || count(event_id) from generate_series($1::bigint, $1 + $2 - 1) i
				left join outbox_events on (payload->>'n')::bigint = i where i % 10 <> 9 group by i having count(event_id) <> 1`,
		},
		{
			"versions are not dense and rising in the order of insertion: lock the aggregate's row first, take its version from there, insert the event last",
			`select aggregate_id || ' has ' || coalesce(aggregate_version::text, 'none') || ' as number ' || place || ' (seq ' || seq || ')'
				from (select *, row_number() over (partition by aggregate_id order by seq) as place from outbox_events) o
				where aggregate_version is distinct from place order by seq`,
		},
		{
			"accounts and events do not agree: write both in one transaction",
			`select id || ' has version ' || version || ', balance ' || balance || ', events ' || count(event_id)
				from account left join outbox_events on aggregate_id = id
				group by id having count(event_id) <> version or version <> balance`,
		},
		{
			"event ids are not of UUID version 7",
			`select event_id::text from outbox_events where substr(event_id::text, 15, 1) <> '7'`,
		},
		{
			"events are not what was asked for",
			`select aggregate_type || ' ' || aggregate_id || ' ' || event_type || ' ' || payload::text from outbox_events
				where aggregate_type <> 'account' or event_type <> 'Deposited' or payload->'amount' is distinct from '1'
				or aggregate_id <> 'acct-' || (payload->>'n')::bigint % 7`,
		},
	} {
		var args []any
		if strings.Contains(check.sql, "$1") {
			args = []any{wholeStart, wholeCount}
		}
		if found := a.lines(check.sql, args...); len(found) > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", check.wrong, some(found)))
		}
	}
	return errors.Join(errs...)
}

// some are the first few of many.
func some(lines []string) string {
	const most = 5
	if len(lines) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(lines[:most], ", "), len(lines)-most)
	}
	return strings.Join(lines, ", ")
}

// checkTopic compares the topic with the outbox: the same events, and the versions
// of each account in order.
func (a *arena) checkTopic() error {
	var errs []error
	published := map[string]bool{}
	newest := map[string]int{}
	for _, r := range a.records() {
		id, _ := r.Header("id")
		if published[string(id)] {
			continue // the order is that of first occurrences
		}
		published[string(id)] = true
		text, _ := r.Header("aggregate_version")
		version, err := strconv.Atoi(string(text))
		if want := newest[string(r.Key)] + 1; err != nil || version != want {
			errs = append(errs, fmt.Errorf("%s at offset %d of partition %d has the version %q, want %d", r.Key, r.Offset, r.Partition, text, want))
		}
		newest[string(r.Key)] = version
	}
	written := a.lines(`select event_id::text from outbox_events`)
	for _, id := range written {
		if !published[id] {
			errs = append(errs, fmt.Errorf("event %s is in the outbox and not in the topic", id))
		}
	}
	for id := range published {
		if !slices.Contains(written, id) {
			errs = append(errs, fmt.Errorf("event %s is in the topic and not in the outbox", id))
		}
	}
	return errors.Join(errs...)
}

// checkView compares the effects with the accounts.
func (a *arena) checkView() error {
	found := a.lines(`select a.id || ' has version ' || a.version || ' and balance ' || a.balance || ', its view '
			|| coalesce(v.events, 0) || ' events and balance ' || coalesce(v.balance, 0)
		from account a left join account_view v on v.id = a.id
		where coalesce(v.events, 0) <> a.version or coalesce(v.balance, 0) <> a.balance order by a.id`)
	found = append(found, a.lines(`select id || ' is in the view and is no account' from account_view where id not in (select id from account)`)...)
	if len(found) > 0 {
		return fmt.Errorf("not every event has had its effect once: %s", some(found))
	}
	return nil
}
