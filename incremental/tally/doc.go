// Package tally keeps, per tracked community, the additive statistics that every
// quantifier reads; docs/methods.md has the formulas that read them.
//
// With phi(v) the profile of vertex v over Z cells, a(v) the kernel mass of v for
// the community and m(v) the multiplicity of a member:
//
//	P_z   = sum of m phi_z over the unlabelled members that have a prediction
//
// plus the same sums without phi, the second moments of the own prediction over the members, exact
// counts of the labelled members by class, and what audit.go sums over the audited ones. When
// statistics are read it adds
//
//	N_zi  = sum of phi_z    over calibration labels of class i, counted once for all communities
//	A1_zi = sum of a phi_z  over them
//	A2_zi = sum of a² phi_z over them
//
// A label of either role takes a member out of P and out of the kernel's sources; only labels of
// role calibrate enter N, A1 and A2. So no vertex is ever weighed by its own mass.
//
// There are four kinds of cells (Families): the own prediction, the own prediction
// times the mean of the neighbours', and both again with the most likely class in the
// place of the vector. Only kinds that the configured methods read are kept, each for itself.
//
// Invariant: every sum that is kept equals the sum of its terms counted from nothing, bit for bit,
// because each term is a fixed function of integers, is cut to the unit of Sum once, and enters or
// leaves by integer addition. A float that a term has entered and left is not the float it was.
// Sums over labels are floats, in the order of the vertices, as they are counted from nothing.
//
// In a step, after Begin, Update follows labels, profiles and members, once for what the batch
// changed and once more for what a built-in classifier made of it, and notes who joined or left
// each community's kernel. Masses are asked for when statistics are read:
//
//   - with a field for each community, Statistics sums the masses of all labels, in the order of
//     the vertices. A field moves most of them between two emissions, and what else an emission
//     reads of a community takes all labels too, so nothing is gained by following each;
//   - with one dual for all communities there are no masses by label, and of whole classes alone.
//     DualStatistics reads A1 as sums of its values over the members. A2 is not linear in the
//     members. Sketch estimates its ratio to the square of A1 by class, now and then, and in
//     between that stands still.
//
// With ClassMasses fields are read of whole classes alone, too.
//
// With a half-life (decay.go) a label counts less the older it is, by a factor g that time
// alone does not change: all ages are measured from a landmark. N then sums g phi, A1 sums
// g a phi, A2 sums g² a² phi, and one more sum is there, of g² a phi, for the variance of a
// mixture of both weights.
//
// Cost: O(Z) per changed profile and community it belongs to, and with fields O(Z) per label and
// community whose statistics are read. Begin and Update visit no community that nothing
// happened to. A change of a calibration row moves N, which all communities read and the next
// emission counts, in O(Z) a label; TouchAll notes that in one place, and Changed spreads it then.
//
// It solves nothing, knows nothing of methods, and reads kernels only through Mass or a dual.
package tally
