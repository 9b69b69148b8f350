// Package admin serves the probes, the metrics and the status of a running
// instance over HTTP.
//
// Everything is answered from the relay's snapshot, so no request ever waits for
// PostgreSQL or Kafka. /livez says only whether the loops turn: restarting the
// process mends nothing that happens outside it. /readyz tells the truth, with
// the reason. The probes and metrics name no event, no aggregate and no error
// text of a server beyond the reason; /status.json does, and is therefore served
// to this machine only, as are detail and hint in /readyz. A proxy on this
// machine that says for whom it asks counts as elsewhere; one that does not must
// not pass /status.json on.
package admin
