// Package notify tells others of alerts: signed webhooks, and Alertmanager.
//
// A webhook gets every beginning and end of an alert, in order and at least once.
// Its queue is a durable consumer of the stream GQL_ALERTS: on the broker's disk,
// bounded by the stream, and there after a restart. One message is under way at a
// time; it is tried again with pauses that double until it is taken, or too old,
// and then dropped and counted. Nothing here can hold up the run loop.
//
// An Alertmanager gets what fires now, again and again while it fires, and what has
// ended for a while afterwards; it forgets by itself what it hears no more of. So
// there is no queue, only the newest state.
//
// Security. A target is an address that the operator wrote. Redirects are not followed,
// proxies not used, answers read up to answerBytesMax, and every attempt has a time limit.
// Bodies are signed as the Standard Webhooks specification describes: HMAC-SHA256
// over id, time and body.
//
// Each target has one goroutine, which Close ends and waits for.
package notify
