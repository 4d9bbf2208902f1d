// Package notify sends alerts to signed webhooks and to Alertmanager.
//
// A webhook gets every beginning and end of an alert, in order and at least once. Its queue is a
// durable consumer of the stream GQL_ALERTS: on the broker's disk, bounded by the stream, and still
// there after a restart. One message is sent at a time. It is retried with doubling pauses until
// the webhook accepts it or it is too old; then it is dropped and counted. A target cannot delay
// the run loop.
//
// An Alertmanager gets the firing alerts again and again, and ended alerts for a while. It drops
// alerts that are not repeated. So there is no queue, only the newest state.
//
// Security. The operator configures the addresses. Redirects are not followed, proxies not used,
// answers read up to answerBytesMax, and every attempt has a time limit. Bodies are signed
// according to the Standard Webhooks specification: HMAC-SHA256 over id, time and body.
//
// Each target has one goroutine. Close ends it and waits for it.
package notify
