"""Compares every integral of small molecules with PySCF; part of `./test --long`.

Usage: python3 apps/hf/tests/integrals.py [--fixture] PROGRAM

PROGRAM is the example `integral_elements`, which prints atoms and integrals. PySCF has the same tables of basis sets,
so each element must agree to 1e-12 in atomic units. Cartesian d functions of PySCF have other norms; they are brought
to norm one first. With --fixture it prints apps/hf/src/integrals/data/h2o-6-31g-star.txt instead. Exit code 0:
all equal; 1: a difference.
"""

import subprocess
import sys

import numpy
import pyscf
from pyscf import gto

TOLERANCE = 1e-12

CASES = [
    ("h2o", "3-21g", "spherical"),
    ("ch4", "6-31g*", "spherical"),
    ("ch4", "6-31g*", "cartesian"),
]


def ours(program, case):
    """The atoms, and (kind, functions, value) of each integral."""
    text = subprocess.run([program, *case], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    atoms = [(words[1], [float(word) for word in words[2:]]) for words in lines if words[0] == "atom"]
    values = [(words[0], tuple(map(int, words[1:-1])), float(words[-1])) for words in lines if words[0] != "atom"]
    return atoms, values


def theirs(atoms, basis, kind):
    """All integrals of PySCF, by kind."""
    molecule = gto.M(atom=atoms, unit="B", basis=basis, cart=kind == "cartesian", verbose=0)
    norms = molecule.intor("int1e_ovlp").diagonal() ** -0.5
    pairs = numpy.outer(norms, norms)
    names = {"overlap": "int1e_ovlp", "kinetic": "int1e_kin", "attraction": "int1e_nuc"}
    found = {name: molecule.intor(own) * pairs for name, own in names.items()}
    for axis, matrix in zip("xyz", molecule.intor("int1e_r")):
        found[f"dipole-{axis}"] = matrix * pairs
    found["repulsion"] = molecule.intor("int2e") * pairs[:, :, None, None] * pairs[None, None, :, :]
    return found


def compare(program, case):
    """The largest difference of a case, and how many elements were compared."""
    atoms, values = ours(program, case)
    expected = theirs(atoms, case[1], case[2])
    differences = [abs(value - expected[kind][functions]) for kind, functions, value in values]
    worst = int(numpy.argmax(differences))
    if not differences[worst] < TOLERANCE:
        kind, functions, value = values[worst]
        sys.exit(f"{' '.join(case)}: {kind} {functions} is {value!r} here and {expected[kind][functions]!r} in PySCF")
    return differences[worst], len(values)


def fixture(program):
    """A sample of the integrals of water, as PySCF has them."""
    random = numpy.random.default_rng(7)
    atoms, _ = ours(program, ("h2o", "6-31g*", "spherical"))
    print(f"# Integrals of H2O in 6-31G* (spherical) by PySCF {pyscf.__version__}, mol.intor: int1e_ovlp, int1e_kin, "
          "int1e_nuc, int1e_r, int2e.")
    print("# Each line: kind, functions from 0, value in atomic units. Made with apps/hf/tests/integrals.py.")
    for kind, matrix in theirs(atoms, "6-31g*", "spherical").items():
        places = [place for place in numpy.ndindex(matrix.shape) if abs(matrix[place]) > 1e-6]
        for index in random.choice(len(places), 80 if kind == "repulsion" else 12, replace=False):
            print(kind, *places[index], f"{matrix[places[index]]:.16e}")


def main():
    if sys.argv[1] == "--fixture":
        return fixture(sys.argv[2])
    print(f"PySCF {pyscf.__version__}")
    for case in CASES:
        difference, count = compare(sys.argv[1], case)
        print(f"{' '.join(case)}: {count} integrals, at most {difference:.1e} apart")


main()
