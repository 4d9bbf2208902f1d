// Package prequential maintains the accuracy of a classifier, measured at every calibration label
// as it arrives and before it is used (Dawid, "Prequential Analysis", 1984), and reports when it
// has become worse.
//
// A judgement compares the prediction that a vertex had before its label came with
// that label. For every model version and true class it updates exponentially faded
// means (Gama, Sebastião and Rodrigues 2013) of hits, Brier score and log score; they
// fade by the number of judgements, not by time, with the plain mean until there are
// enough. A label that is corrected or asserted again is no new judgement.
//
// Degradation is sought by the risk-adjusted CUSUM of Steiner, Cook, Farewell and
// Treasure (2000), over all classes of a version together. The first referenceLabels
// judgements of a class give its error rate e, raised by one standard error because
// it is an estimate; from then on every judgement of that class moves
//
//	S <- max(0, S + log(R^miss / (1 - e + R e))),   R = 2,
//
// the log likelihood ratio of doubled odds of an error. Being conditional on the true
// class, it does not mistake a change in the mix of classes for one of the classifier.
// When S reaches Threshold = log 1,000 the version is Degraded, until S is back at
// zero. Were e known, false alarms would be at least 1,000 judgements apart on
// average (Lorden 1971); with e estimated and raised they are over 100,000 apart in
// simulation, and a loss of a fifth of the accuracy is found after 150 to 400.
//
// The state is a function of the judgements in their order, and of nothing else. It
// is bounded: at most versionsMax versions are kept, those judged last. O(K) a
// judgement. It knows neither the graph nor the estimates.
package prequential
