"""What PySCF needs for a Hartree-Fock calculation on one thread, in the words of the bench.

Started by `isles-bench` as `python3 hartree_fock.py MOLECULE BASIS`, where MOLECULE is a file with a line
`SYMBOL x y z` for each atom, in bohr. PySCF's integrals are libcint's, in C. All are computed in each iteration (direct
SCF), because none may be kept. Prints `measured NAME VALUE` lines. Reading the file is not timed. It does not judge.
"""

import sys
import time

import pyscf
from pyscf import gto, lib, scf


def atoms(path):
    for line in open(path, encoding="utf-8"):
        words = line.split()
        if len(words) == 4 and words[0].isalpha():
            yield words[0], [float(word) for word in words[1:]]


def main():
    lib.num_threads(1)
    molecule = gto.M(atom=list(atoms(sys.argv[1])), unit="Bohr", basis=sys.argv[2], verbose=0)
    field = scf.RHF(molecule)
    field.max_memory = 0  # no integral is kept
    field.conv_tol = 1e-10
    start = time.perf_counter()
    energy = field.kernel()
    print("version PySCF", pyscf.__version__)
    print("measured seconds", time.perf_counter() - start)
    print("measured energy", repr(float(energy)))


main()
