// Package setup makes what the relay needs in PostgreSQL: the outbox table with
// its append-only guard, the publication, and then the slot.
//
// It looks at everything before it changes anything, refuses what is there but
// does not fit, and leaves what fits alone: running it twice changes nothing.
// Everything but the slot is made in one transaction; the slot comes last,
// because pgoutput looks the publication up as of the WAL that it decodes (I6).
// An existing table is never altered.
//
// SQL gives the same statements as text, for somebody with more rights.
package setup
