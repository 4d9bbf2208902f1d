// Package tally keeps, per tracked community, the additive statistics that every
// quantifier reads (DESIGN section 8).
//
// With phi(v) the profile of vertex v over Z cells, a(v) the kernel mass of v for
// the community and m(v) the multiplicity of a member:
//
//	P_z   = sum of m phi_z over the unlabelled members that have a prediction
//	N_zi  = sum of phi_z    over calibration labels of class i, one copy for all
//	A1_zi = sum of a phi_z  over them
//	A2_zi = sum of a² phi_z over them
//
// plus the same sums without phi, the second moments of the own prediction over
// the members, and exact counts of the labelled members by class. A label of
// either role takes a member out of P and out of the kernel's sources; only
// labels of role calibrate enter N, A1 and A2. So no vertex is ever weighed by
// its own mass.
//
// Invariant: every sum equals the sum of its terms counted from nothing, bit for
// bit, because each term is a fixed function of integers and of a(v), is cut to
// the unit of Sum once, and enters or leaves by integer addition.
//
// Two passes a step. Update, single-threaded, follows labels, profiles and
// members and reports who joined or left each community's kernel; UpdateKernel,
// one call per community and free to run side by side, follows the kernel masses.
// Cost: O(Z) per changed profile and community it belongs to, and O(Z) per
// labelled vertex whose mass moved, per community.
package tally
