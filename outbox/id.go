package outbox

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// DeriveID makes the same id of the same time and key every time: for a command
// that may arrive again, whose event must not get a second id. The key says what
// the command was, such as its idempotency key with the event's place in it; at
// is the command's own time, not the time of the attempt. Ids of later times sort
// behind those of earlier ones. It is a UUID of version 8.
func DeriveID(at time.Time, key string) uuid.UUID {
	var id uuid.UUID
	sum := sha256.Sum256([]byte(key))
	copy(id[:], sum[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// idTime is the time in a UUID of version 7. Version 8 has no meaning that
// everybody shares.
func idTime(id uuid.UUID) (time.Time, bool) {
	if id.Version() != 7 {
		return time.Time{}, false
	}
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))), true
}
