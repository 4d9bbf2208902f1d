// Package tally keeps, per tracked community, the additive statistics that every
// quantifier reads; docs/methods.md has the formulas that read them.
//
// With phi(v) the profile of vertex v over Z cells, a(v) the kernel mass of v for
// the community and m(v) the multiplicity of a member:
//
//	P_z   = sum of m phi_z over the unlabelled members that have a prediction
//
// plus the same sums without phi, the second moments of the own prediction over the members, exact
// counts of the labelled members by class, and the sums of audit.go over the audited members. When
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
// Invariant: every stored sum equals a recount of its terms, bit for bit. Each term is a fixed
// function of integers, is cut to the unit of Sum once, and is added and subtracted as an integer;
// a float would not return to its former value. Sums over labels are floats, because each is
// counted again in the order of the vertices.
//
// In a step, after Begin, Update follows labels, profiles and members, once for the changes of the
// batch and once for the new predictions of a built-in classifier. It notes the vertices that
// joined or left the source of each community's kernel. Masses are read with the statistics:
//
//   - with a field for each community, Statistics sums the masses of all labels, in the order of
//     the vertices. A field moves most of them between two emissions, and other parts of an
//     emission read all labels as well, so an update for each label would save nothing;
//   - with one dual for all communities there are masses by class only, not by label.
//     DualStatistics reads A1 as sums of its values over the members. A2 is not linear in the
//     members. Sketch estimates its ratio to the square of A1 by class from time to time; in
//     between the ratio stays.
//
// With ClassMasses fields give masses by class only, too.
//
// With a half-life (decay.go) a label counts less the older it is, by a factor g that time alone
// does not change: all ages are measured from a landmark. N then sums g phi, A1 sums g a phi, A2
// sums g² a² phi, and a further sum, of g² a phi, serves the variance of a mixture of both weights.
//
// Cost: O(Z) per changed profile and community it belongs to, and with fields O(Z) per label and
// community for the statistics. Begin and Update visit changed communities only. A change of a
// calibration row changes N for all communities; the next emission counts N again, in O(Z) a label.
// TouchAll notes such a change in one place, and Changed marks all communities.
//
// It solves nothing, knows nothing of methods, and reads kernels only through Mass or a dual.
package tally
