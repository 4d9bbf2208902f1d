// Package explain says why an estimate moved between two places of the log: what
// members joining and leaving, predictions, model versions, labels and edges each
// contributed, so that the contributions sum to the change.
//
// It knows two states of a graph and nothing of how the log led from one to the
// other. Begin copies the first state, with the one community in question, into a
// core of its own. To compares that copy with the second state, fact by fact and by
// vertex name, sorts the differences into causes, and lets the copy walk through
// every combination of causes, asking the core for its estimate at each: the same
// code that serves the stream, so every method, kernel and classifier can be
// explained. A cause that has not occurred in a combination has the first state's
// facts.
//
// The contribution of a cause is its Shapley value (Shapley, 1953): what it changes
// when it is put in place, averaged over every order in which the causes can be put
// in place. No order is preferred, causes that act only together share evenly, one
// that changes nothing gets nothing, and the values sum to the change. At most
// five causes are facts, and auto adds two of its own: the coefficients of its posterior,
// where they were fitted anew, and gamma, which are those of either end in a combination,
// whatever its facts. The average is taken over all combinations, 128 at most,
// visited in the order of a Gray code: one cause changes at a time, the cheap ones
// most often.
//
// A fact belongs to one cause. The first prediction of a vertex that joins belongs
// to its joining, and one that goes with a member to its leaving; all other changes of
// predictions to the model version when the pipeline switched to another, which
// replaces every prediction at once, else to predictions. An edge
// that expired was removed. Predictions of a built-in classifier are no facts but
// follow from labels and edges.
//
// Cost: a copy of the graph and one kernel, both states being alive; for a cause of
// n facts, the incremental cost of n events, up to 16 times for the smallest cause
// and twice for the largest; a solution for every combination. Certificates are
// 1e-8, so that what the walk itself adds is far below what is shown.
//
// The package does no I/O and reads no clock.
package explain
