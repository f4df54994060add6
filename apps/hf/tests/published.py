"""Reads published basis sets and molecules as they are, and compares energies with PySCF; part of `./test --long`.

Usage: python3 apps/hf/tests/published.py PROGRAM     (needs the packages that `stage_integrals` of ./test installs)

PROGRAM is `isles-hf`. Basis sets are whole files of the Basis Set Exchange with all elements, in three forms. XYZ files
are whole collections of ASE in one file each, as ASE writes them, plain and extended; and five collections of files as
four other packages ship them. Each energy must be PySCF's to
1e-8 hartree, and what must be refused is refused in one line. Exit code 0: all right; 1: a difference.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import basis_set_exchange
from ase import io
from ase.build import molecule
from ase.collections import g2, s22
from pyscf import gto, scf

TOLERANCE = 1e-8
SETS = [
    "STO-3G", "6-31G**", "6-311G**", "6-311++G(2d,2p)", "cc-pVDZ", "aug-cc-pVDZ", "cc-pVTZ", "def2-SVP", "def2-TZVP",
    "pc-1", "LANL2DZ", "MIDI!", "Sapporo-DZP-2012", "ANO-RCC-VDZP",
]
FORMS = {"nwchem": "nw", "gaussian94": "gbs", "psi4": "psi4.gbs"}
MOLECULES = ["H2O", "H2", "HCl"]
# What a file asks for that is not computed: f functions of the molecule's elements, and core potentials.
REFUSED = {("cc-pVTZ", "H2O"), ("cc-pVTZ", "HCl"), ("def2-TZVP", "H2O"), ("def2-TZVP", "HCl"), ("LANL2DZ", "HCl")}


# Packages with the folders of their XYZ files.
SHIPPED = [
    ("berny", "benchmarks"), ("geometric", "data"), ("pysisyphus", "."), ("molSimplify", "Ligands"),
    ("molSimplify", "Substrates"),
]


def run(program, path, basis, *more):
    """What the program makes of two files: its JSON, or its line of refusal."""
    flags = ["--machine", "threads", "--places", "1", "--json", "-", "--csv", "/dev/null", *more]
    ended = subprocess.run([program, "--molecule", path, "--basis", basis, *flags], capture_output=True, text=True)
    if ended.returncode == 0:
        return json.loads(ended.stdout)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1, (path, basis, ended)
    return ended.stderr


def reference(atoms, basis, is_cartesian=False):
    """The energy of PySCF."""
    points = [(symbol, point) for symbol, point in zip(atoms.get_chemical_symbols(), atoms.positions)]
    field = scf.RHF(gto.M(atom=points, basis=basis, cart=is_cartesian, verbose=0))
    field.conv_tol = 1e-12
    field.kernel()
    return field.e_tot if field.converged else None


def check_sets(program, folder):
    """Compares energies in all sets and forms; the number of differences."""
    wrong = 0
    for name in MOLECULES:
        atoms = molecule(name)
        path = folder / f"{name}.xyz"
        io.write(path, atoms, format="xyz", fmt="%22.15f")
        for basis in SETS:
            parts = {
                symbol: gto.basis.parse(basis_set_exchange.get_basis(basis, elements=[symbol], fmt="nwchem"), symbol)
                for symbol in set(atoms.get_chemical_symbols()) if (basis, name) not in REFUSED
            }
            for form, ending in FORMS.items():
                file = folder / f"{basis.replace('/', '_')}.{ending}"
                file.write_text(basis_set_exchange.get_basis(basis, fmt=form))
                found = run(program, path, file)
                is_refused = isinstance(found, str)
                right = is_refused if not parts else not is_refused and (
                    abs(found["energy"] - reference(atoms, parts, found["run"]["cartesian"])) < TOLERANCE
                )
                if not right:
                    wrong += 1
                    print("wrong:", name, file.name, found if is_refused else found["energy"])
    return wrong


def collections(folder):
    """XYZ files, each with a whole collection, with the numbers and the atoms of those that can be computed.

    One of each is text alone, one is in the extended form with a column more.
    """
    for title, collection in [("g2", g2), ("s22", s22)]:
        every = [collection[name] for name in collection.names]
        for atoms in every:
            atoms.pbc = False
            atoms.set_initial_magnetic_moments(None)
        plain, extended = folder / f"{title}.xyz", folder / f"{title}.extended.xyz"
        io.write(plain, every, format="xyz", fmt="%22.15f")
        for atoms in every:
            atoms.arrays["partial_charges"] = atoms.numbers * 0.1
        io.write(extended, every, format="extxyz")
        for path, read in [(plain, every), (extended, io.read(extended, index=":"))]:
            for index, atoms in enumerate(read):
                if max(atoms.numbers) <= 18 and sum(atoms.numbers) % 2 == 0 and len(atoms) <= 12:
                    yield path, index + 1, atoms


def shipped():
    """The smaller molecules of XYZ files as other packages have them: the first frame and the last of each file."""
    for package, folder in SHIPPED:
        root = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0]) / folder
        paths = sorted(root.rglob("*.xyz"))
        assert paths, f"{package} has no XYZ files in {folder}"
        seen = set()
        for path in paths:
            text = path.read_bytes()
            if text in seen:
                continue
            seen.add(text)
            try:
                every = io.read(path, index=":", format="xyz")
            except (ValueError, IndexError, KeyError):
                continue  # ASE does not read it either
            for frame in sorted({1, len(every)}):
                atoms = every[frame - 1]
                if max(atoms.numbers) <= 18 and sum(atoms.numbers) % 2 == 0 and 1 < len(atoms) <= 10:
                    yield path, frame, atoms


def check_molecules(program, folder):
    """Compares energies of all molecules in STO-3G; the number of differences."""
    wrong = count = 0
    for path, frame, atoms in [*collections(folder), *shipped()]:
        expected = reference(atoms, "sto-3g")
        if expected is None:
            continue  # PySCF does not converge
        found = run(program, path, "sto-3g", "--frame", str(frame))
        right = not isinstance(found, str) and abs(found["energy"] - expected) < TOLERANCE
        count += 1
        if not right:
            wrong += 1
            print("wrong:", path.name, frame, expected, found if isinstance(found, str) else found["energy"])
    print(f"{count} molecules out of collections")
    return wrong


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wrong = check_sets(program, folder) + check_molecules(program, folder)
    print(f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
