// Package slot owns what PostgreSQL keeps for the relay: the publication, the
// replication slot and the replication session. It knows positions, not
// contents, and is the only user of the replication protocol.
//
// Inspect, CheckSlot and CheckPublication say whether slot and publication are
// what the relay needs, and Monitor goes on asking. Create makes a slot, and
// nothing else does: a missing, invalidated or foreign slot is an error that
// names the gap and the ways out, never a silent re-creation (I6). Stream reads
// from the slot and confirms to it (I4, I5).
//
// The tables are checked by SQL as well as by the stream, because PostgreSQL is
// silent about a table that left the publication or was made anew, and from 18
// on about a publication that is gone, too.
//
// It never drops a slot, never decodes a row, and decides no privilege by
// looking into pg_roles: managed servers give rights in ways that do not show
// there, so it tries and passes on the server's own words.
package slot
