// Package alerts decides which alerts fire: a fold over published estimates.
//
// An Engine keeps, for every rule, community and class that the rule names, one
// alert with its state (inactive, pending, firing) and the state of its detector. At
// every emission of the log Evaluate takes the estimates that were published and
// returns the transitions into firing and out of it.
//
// Detectors. A threshold compares one end of the interval, or the point, with a number. A
// change with a number compares the point with the one that held a while ago, kept on a grid of
// changeCells cells. A CUSUM with a number is the two-sided cumulative sum of Page (Biometrika
// 41, 1954) over the movements z in units of the usual movement of the series:
//
//	S+ <- max(0, S+ + z - k),  S- <- max(0, S- - z - k),  alarm when either is above h
//
// A change or a CUSUM without a number scores how seldom chance moves the count of predictions so
// far in so short a time (chance.go); its threshold follows from the budget.
//
// The sums stop at twice h, so that an alarm ends at a known time after things are quiet.
// A rule about a difference gets the records of package difference.
//
// "Now" is the time in the log. The same estimates at the same positions give the same
// transitions, and Save and Restore in between change nothing. Estimates with a flag that
// suppresses and those below the privacy floor begin and end nothing; see Rule. After a new
// model version, detectors that compare with the past begin again.
//
// Units: shares are between 0 and 1, times are nanoseconds of log time. Cost of an
// emission: O(rules) for each estimate, and one pass over all alerts when one of
// them is due by time alone. There are at most alertsMax; further ones are only counted.
//
// It reads no clock, does no I/O and delivers nothing. One goroutine owns an Engine.
package alerts
