// Package explain divides the change of an estimate between two places of the log among its causes:
// members that joined or left, predictions, model versions, labels and edges. The contributions sum
// to the change.
//
// It reads two states of a graph, not the log between them. Begin copies the first state, with the
// one community in question, into a core of its own. To compares that copy with the second state,
// fact by fact and by vertex name, and sorts the differences into causes. Then it applies every
// combination of causes to the copy and reads the core's estimate of each. This is the code that
// serves the stream, so every method, kernel and classifier can be explained. A cause that is
// absent from a combination has the first state's facts.
//
// The contribution of a cause is its Shapley value (Shapley, 1953): the change when it is applied,
// averaged over every order of the causes. No order is preferred, causes that act only together
// share evenly, a cause without effect gets zero, and the values sum to the change. At most five
// causes are facts. auto adds two: the coefficients of its posterior, if they were fitted again,
// and gamma. In a combination these have the value of one of the two ends, independent of the
// facts. The average is taken over all combinations, 128 at most, visited in the order of a Gray
// code: one cause changes at a time, the cheap ones most often.
//
// A fact belongs to one cause. The first prediction of a vertex that joins belongs
// to its joining, and one that goes with a member to its leaving; all other changes of
// predictions to the model version when the pipeline switched to another, which
// replaces every prediction at once, else to predictions. An edge
// that expired was removed. Predictions of a built-in classifier are no facts but
// follow from labels and edges.
//
// Cost: a copy of the graph and one kernel, both states being alive; for a cause of n facts, the
// incremental cost of n events, up to 16 times for the smallest cause and twice for the largest; a
// solution for every combination. Certificates are 1e-8, so the error of the computation is far
// below the displayed digits.
//
// The package does no I/O and reads no clock.
package explain
