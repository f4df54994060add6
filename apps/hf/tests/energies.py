"""Writes apps/hf/tests/energies.txt: energies of PySCF, from equilibrium to bonds of three times their length.

Usage: python3 apps/hf/tests/energies.py > apps/hf/tests/energies.txt   (needs pyscf 2.14 and ase 3.29; half an hour)

Molecules are those of the G2 set with at most eight atoms, as ASE has them, and a few diatomic ones; of each the bond
between its heaviest atoms is stretched. A line has a molecule, the stretch, a basis set, the energy that PySCF
converges to from its own guess (`-` if it does not), the energies of the stable solutions that it finds from four
guesses, lowest first and joined by commas, and the atoms in ångström. Stable means that PySCF's check of internal
stability says so; a solution that is not is followed with its second-order solver, ten times at most.
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


def stable(field):
    """The energy of the stable solution that a solution leads to, or None."""
    for _ in range(10):
        orbitals, _, is_stable, _ = field.stability(internal=True, external=False, return_status=True)
        if is_stable:
            return field.e_tot if field.converged else None
        field = converged(scf.RHF(field.mol).newton(), orbitals, field.mo_occ)
    return None


def line(name, stretch, basis, atoms):
    """What is known of one case."""
    mol = gto.M(atom=atoms, basis=basis, verbose=0)
    energies, seen, plain = [], [], "-"
    for guess in ["minao", "atom", "1e", "huckel"]:
        field = scf.RHF(mol)
        field.init_guess = guess
        field = converged(field)
        if guess == "minao" and field.converged:
            plain = f"{field.e_tot:.10f}"
        if not any(abs(field.e_tot - other) < 1e-8 for other in seen):
            seen.append(field.e_tot)
            energy = stable(field)
            if energy is not None and not any(abs(energy - other) < 1e-7 for other in energies):
                energies.append(energy)
    found = ",".join(f"{energy:.10f}" for energy in sorted(energies)) or "-"
    points = " ".join(f"{symbol} {x} {y} {z}" for symbol, (x, y, z) in atoms)
    return f"{name} {stretch:g} {basis} {plain} {found} {points}"


def main():
    lib.num_threads(1)
    for name, stretch, atoms in cases():
        for basis in SETS:
            print(line(name, stretch, basis, atoms), flush=True)


if __name__ == "__main__":
    sys.exit(main())
