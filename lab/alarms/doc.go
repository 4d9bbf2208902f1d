// Package alarms measures alert rules on simulated networks: which alarms they give while nothing
// moves, and which moves they find how soon. The whole way from events to alerts runs in one
// process: the network makes events, the core makes estimates of them, the engine evaluates the
// rules. The truth is known, so every alarm is of a move or false.
// It is a measurement, made on request, and holds no code but tests.
package alarms
