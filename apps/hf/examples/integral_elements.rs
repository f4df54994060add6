//! The side of this project in the comparison with PySCF (`tests/integrals.py`).
//!
//! `integral_elements MOLECULE BASIS spherical|cartesian` prints the atoms in bohr, then every integral over the
//! functions: a line each with its kind, its functions from 0, and its value. For this comparison only.

use isles_hf::integrals::one_electron::{attraction, functions, moments};
use isles_hf::integrals::{PRIMITIVES_MIN, Repulsion, pairs};
use isles_hf::{basis, molecule};
use std::io::{BufWriter, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, set, kind] = arguments.as_slice() else {
        return Err("wanted: MOLECULE BASIS spherical|cartesian".into());
    };
    let is_cartesian = kind == "cartesian";
    let molecule = molecule::open(name, 0)?;
    let shells = basis::shell::shells(&molecule, &basis::open(set, &molecule.elements())?, is_cartesian)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for atom in &molecule.atoms {
        let [x, y, z] = atom.point;
        writeln!(out, "atom {} {x:e} {y:e} {z:e}", atom.element)?;
    }
    let size = functions(&shells);
    let (pairs, _) = pairs(&shells, is_cartesian);
    let moments = moments(&shells, is_cartesian);
    let attraction = attraction(size, &pairs, &molecule.atoms);
    let [x, y, z] = &moments.dipole;
    let matrices = [&moments.overlap, &moments.kinetic, &attraction, x, y, z].into_iter().zip([
        "overlap",
        "kinetic",
        "attraction",
        "dipole-x",
        "dipole-y",
        "dipole-z",
    ]);
    for (matrix, kind) in matrices {
        for (index, value) in matrix.values().iter().enumerate() {
            writeln!(out, "{kind} {} {} {value:e}", index / size, index % size)?;
        }
    }
    let mut repulsion = Repulsion::new(PRIMITIVES_MIN);
    for (index, bra) in pairs.iter().enumerate() {
        for ket in &pairs[..=index] {
            let (block, _) = repulsion.block(bra, ket);
            for (place, value) in block.iter().enumerate() {
                let (one, other) = (place / ket.components(), place % ket.components());
                let [i, j] = [one / bra.functions[1] + bra.first[0], one % bra.functions[1] + bra.first[1]];
                let [k, l] =
                    [other / ket.functions[1] + ket.first[0], other % ket.functions[1] + ket.first[1]];
                writeln!(out, "repulsion {i} {j} {k} {l} {value:e}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}
