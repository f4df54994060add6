"""Writes apps/hf/tests/energies.txt: energies of PySCF, from equilibrium to bonds of three times their length.

Usage: python3 apps/hf/tests/energies.py > apps/hf/tests/energies.txt   (needs pyscf 2.14 and ase 3.29; half an hour)

Molecules are those of the G2 set with at most eight atoms, as ASE has them, and a few diatomic ones; of each the bond
between its heaviest atoms is stretched. A line has a molecule, the stretch, a basis set, the energy that PySCF
converges to from its own guess (`-` if it does not), the energies of the stable solutions that it finds from four
guesses (for MORE also from the solution with a stretch of 1.5), lowest first and joined by commas, and the atoms in
ångström. Stable means that PySCF's check of internal stability says so; a solution that is not is followed with its
second-order solver, ten times at most.
"""

import sys

import numpy
from ase import Atoms
from ase.build import molecule
from ase.data import covalent_radii
from pyscf import gto, lib, scf

SETS = ["sto-3g", "3-21g", "6-31g*"]
STRETCHES = [1, 1.5, 2, 2.5, 3]
NAMES = (
    "LiH Li2 LiF HF H2O NH3 CH4 C2H2 C2H4 C2H6 HCN CO H2CO CH3OH N2 N2H4 H2O2 F2 CO2 Na2 P2 Cl2 NaCl SiO CS ClF SiH4 "
    "PH3 SH2 HCl CH3Cl HOCl CH3SH N2O OCS HCOOH"
).split()
MORE = {("CH3SH", 2.5, "sto-3g"), ("CH3SH", 3, "sto-3g"), ("CH3Cl", 3, "sto-3g"), ("SiO", 2.5, "3-21g")}
DIATOMIC = {"H2": ("HH", 0.74), "BF": ("BF", 1.267), "NaH": ("NaH", 1.887), "LiCl": ("LiCl", 2.021)}


def bonds(atoms):
    """The pairs of atoms that are bound."""
    for one in range(len(atoms)):
        for other in range(one):
            length = numpy.linalg.norm(atoms.positions[one] - atoms.positions[other])
            if length < 1.3 * (covalent_radii[atoms.numbers[one]] + covalent_radii[atoms.numbers[other]]):
                yield other, one


def fragment(atoms, one, other):
    """The atoms that stay with `other` when its bond to `one` is cut."""
    found, todo = {other}, [other]
    left = [bond for bond in bonds(atoms) if set(bond) != {one, other}]
    while todo:
        last = todo.pop()
        for bond in left:
            if last in bond:
                new = set(bond) - {last} - found
                found |= new
                todo.extend(new)
    return sorted(found)


def cases():
    """Names, stretches and atoms."""
    for name in list(DIATOMIC) + NAMES:
        if name in DIATOMIC:
            formula, length = DIATOMIC[name]
            atoms = Atoms(formula, [[0, 0, 0], [0, 0, length]])
        else:
            atoms = molecule(name)
        weight = lambda bond: (atoms.numbers[bond[0]] * atoms.numbers[bond[1]], -bond[1], -bond[0])
        one, other = max(bonds(atoms), key=weight)
        moved = fragment(atoms, one, other)
        for stretch in STRETCHES:
            points = atoms.positions.copy()
            points[moved] += (stretch - 1) * (atoms.positions[other] - atoms.positions[one])
            rounded = [[round(float(x), 6) + 0.0 for x in point] for point in points]
            yield name, stretch, list(zip(atoms.get_chemical_symbols(), rounded))


def converged(field, *start):
    """Iterates a field to the end."""
    field.verbose, field.conv_tol, field.conv_tol_grad, field.max_cycle = 0, 1e-12, 1e-7, 200
    field.kernel(*start)
    return field


def is_solution(field):
    """Whether the energy has no slope: along zero modes of broken symmetry the solver may never call it converged."""
    return field.converged or abs(field.get_grad(field.mo_coeff, field.mo_occ)).max() < 1e-6


def stable(field):
    """The stable solution that a field leads to, or None."""
    for _ in range(10):
        if not is_solution(field):
            field = converged(scf.RHF(field.mol).newton(), field.mo_coeff, field.mo_occ)
        orbitals, _, is_stable, _ = field.stability(internal=True, external=False, return_status=True)
        if is_stable:
            return field if is_solution(field) else None
        field = converged(scf.RHF(field.mol).newton(), orbitals, field.mo_occ)
    return None


def carried(field, mol):
    """The density of a field's orbitals with the atoms elsewhere: brought to the new overlap as they change least."""
    orbitals = field.mo_coeff[:, field.mo_occ > 0]
    values, vectors = numpy.linalg.eigh(orbitals.T @ mol.intor("int1e_ovlp") @ orbitals)
    orbitals = orbitals @ vectors @ numpy.diag(values**-0.5) @ vectors.T
    return 2 * orbitals @ orbitals.T


def line(name, stretch, basis, atoms, near):
    """What is known of one case; `near` are the atoms with a stretch of 1.5."""
    mol = gto.M(atom=atoms, basis=basis, verbose=0)
    energies, seen, plain = [], [], "-"
    for guess in ["minao", "atom", "1e", "huckel", *(["near"] if (name, stretch, basis) in MORE else [])]:
        field = scf.RHF(mol)
        if guess == "near":
            before = stable(converged(scf.RHF(gto.M(atom=near, basis=basis, verbose=0))))
            field = converged(field, carried(before, mol))
        else:
            field.init_guess = guess
            field = converged(field)
        if guess == "minao":
            plain = f"{field.e_tot:.10f}" if field.converged else "-"
        if not any(abs(field.e_tot - other) < 1e-8 for other in seen):
            seen.append(field.e_tot)
            solution = stable(field)
            if solution is not None and not any(abs(solution.e_tot - other) < 1e-7 for other in energies):
                energies.append(solution.e_tot)
    found = ",".join(f"{energy:.10f}" for energy in sorted(energies)) or "-"
    points = " ".join(f"{symbol} {x} {y} {z}" for symbol, (x, y, z) in atoms)
    return f"{name} {stretch:g} {basis} {plain} {found} {points}"


def main():
    lib.num_threads(1)
    every = list(cases())
    near = {name: atoms for name, stretch, atoms in every if stretch == 1.5}
    for name, stretch, atoms in every:
        for basis in SETS:
            print(line(name, stretch, basis, atoms, near[name]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
