//! Integrals against analytic values, symmetries, and values of PySCF.

use super::super::basis::shell::{Shell, shells};
use super::super::molecule::{Atom, Molecule};
use super::super::{basis, element::Element, molecule};
use super::one_electron::{self, moments};
use super::{PRIMITIVES_MIN, Repulsion, ShellPair, pairs};
use std::f64::consts::PI;

/// Returns an s function of one primitive at a point.
fn sphere(exponent: f64, center: [f64; 3], first: usize) -> Shell {
    // The factor makes its norm one, together with that of the angular part, 1/√4π.
    let norm = (2.0 * exponent / PI).powf(0.75) * (4.0 * PI).sqrt();
    Shell { momentum: 0, center, primitives: vec![(exponent, norm)], first, functions: 1, atom: 0 }
}

fn functions_of(name: &str, set: &str, is_cartesian: bool) -> (Molecule, Vec<Shell>) {
    let molecule = molecule::open(name, 0).unwrap();
    let shells = shells(&molecule, &basis::open(set, &molecule.elements()).unwrap(), is_cartesian).unwrap();
    (molecule, shells)
}

/// Returns all repulsion integrals, indexed by four functions.
fn repulsion(shells: &[Shell], is_cartesian: bool) -> impl Fn([usize; 4]) -> f64 {
    let size = one_electron::functions(shells);
    let pairs = pairs(shells, is_cartesian).0;
    let mut repulsion = Repulsion::new(PRIMITIVES_MIN);
    let mut all = vec![f64::NAN; size.pow(4)];
    let place = move |[i, j, k, l]: [usize; 4]| ((i * size + j) * size + k) * size + l;
    for bra in &pairs {
        for ket in &pairs {
            let (block, _) = repulsion.block(bra, ket);
            for (index, value) in block.iter().enumerate() {
                let (one, other) = (index / ket.components(), index % ket.components());
                let [i, j] = function_pair(bra, one);
                let [k, l] = function_pair(ket, other);
                for same in [[i, j, k, l], [j, i, k, l], [i, j, l, k], [j, i, l, k]] {
                    all[place(same)] = *value;
                }
            }
        }
    }
    move |functions| all[place(functions)]
}

fn function_pair(pair: &ShellPair, component: usize) -> [usize; 2] {
    [pair.first[0] + component / pair.functions[1], pair.first[1] + component % pair.functions[1]]
}

#[test]
fn two_spheres_have_the_integrals_of_the_textbook() {
    // A. Szabo, N. S. Ostlund, Modern Quantum Chemistry, appendix A: (A.9), (A.11), (A.33) and (A.41).
    let (a, b, distance): (f64, f64, f64) = (0.7, 1.9, 1.3);
    let shells = [sphere(a, [0.0; 3], 0), sphere(b, [0.0, 0.0, distance], 1)];
    let (p, reduced) = (a + b, a * b / (a + b));
    let norm = (2.0 * a / PI).powf(0.75) * (2.0 * b / PI).powf(0.75);
    let overlap = norm * (PI / p).powf(1.5) * (-reduced * distance * distance).exp();
    let moments = moments(&shells, false);
    let close = |found: f64, expected: f64| (found - expected).abs() < 1e-14;
    assert!(close(moments.overlap.get(0, 0), 1.0) && close(moments.overlap.get(1, 0), overlap));
    let kinetic = reduced * (3.0 - 2.0 * reduced * distance * distance) * overlap;
    assert!(close(moments.kinetic.get(0, 1), kinetic) && close(moments.kinetic.get(0, 0), 1.5 * a));
    assert!(close(moments.dipole[2].get(0, 1), overlap * b * distance / p));
    let hydrogen = Atom { element: Element::parse("H").unwrap(), point: [0.0; 3] };
    let attraction = one_electron::attraction(2, &pairs(&shells, false).0, &[hydrogen]);
    assert!(close(attraction.get(0, 0), -2.0 * (2.0 * a / PI).sqrt()));
    // Two charges of one exponent at one point, and far from each other.
    let integrals = repulsion(&shells, false);
    assert!(close(integrals([0, 0, 0, 0]), 2.0 * (a / PI).sqrt()));
    let far = [sphere(a, [0.0; 3], 0), sphere(b, [0.0, 40.0, 0.0], 1)];
    assert!(close(repulsion(&far, false)([0, 0, 1, 1]), 1.0 / 40.0));
}

#[test]
fn bra_and_ket_can_be_exchanged_for_all_classes_of_functions() {
    for is_cartesian in [false, true] {
        let (_, shells) = functions_of("h2o", "6-31g*", is_cartesian);
        let shells: Vec<Shell> = shells.into_iter().filter(|shell| shell.atom < 2).collect();
        let size = one_electron::functions(&shells);
        let integrals = repulsion(&shells, is_cartesian);
        for bra in 0..size * size {
            for ket in 0..bra {
                let [i, j, k, l] = [bra / size, bra % size, ket / size, ket % size];
                let (one, other) = (integrals([i, j, k, l]), integrals([k, l, i, j]));
                assert!((one - other).abs() < 1e-13, "({i}{j}|{k}{l}): {one:e} is not {other:e}");
            }
        }
    }
}

#[test]
fn every_function_has_the_norm_one_and_no_integral_is_above_its_bound() {
    for is_cartesian in [false, true] {
        let (_, shells) = functions_of("h2o", "6-31g*", is_cartesian);
        let overlap = moments(&shells, is_cartesian).overlap;
        assert!((0..overlap.size()).all(|function| (overlap.get(function, function) - 1.0).abs() < 1e-14));
        let pairs = pairs(&shells, is_cartesian).0;
        let mut repulsion = Repulsion::new(PRIMITIVES_MIN);
        for bra in &pairs {
            for ket in &pairs {
                let largest =
                    repulsion.block(bra, ket).0.iter().fold(0.0_f64, |most, one| most.max(one.abs()));
                assert!(largest <= bra.bound * ket.bound * (1.0 + 1e-12) + 1e-15);
            }
        }
    }
}

#[test]
fn integrals_of_water_are_those_of_pyscf() {
    let (molecule, shells) = functions_of("h2o", "6-31g*", false);
    let moments = moments(&shells, false);
    let size = moments.overlap.size();
    let attraction = one_electron::attraction(size, &pairs(&shells, false).0, &molecule.atoms);
    let repulsion = repulsion(&shells, false);
    let [x, y, z] = &moments.dipole;
    let mut lines = 0;
    for line in include_str!("data/h2o-6-31g-star.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (value, words) = words.split_last().unwrap();
        let functions: Vec<usize> = words[1..].iter().map(|word| word.parse().unwrap()).collect();
        let found = match (words[0], functions.as_slice()) {
            ("overlap", &[i, j]) => moments.overlap.get(i, j),
            ("kinetic", &[i, j]) => moments.kinetic.get(i, j),
            ("attraction", &[i, j]) => attraction.get(i, j),
            ("dipole-x", &[i, j]) => x.get(i, j),
            ("dipole-y", &[i, j]) => y.get(i, j),
            ("dipole-z", &[i, j]) => z.get(i, j),
            ("repulsion", &[i, j, k, l]) => repulsion([i, j, k, l]),
            _ => panic!("{line}"),
        };
        let expected: f64 = value.parse().unwrap();
        assert!((found - expected).abs() < 1e-12 * expected.abs().max(1.0), "{line}: {found:e}");
        lines += 1;
    }
    assert_eq!(lines, 152);
}

#[test]
fn a_pair_far_apart_still_repels_a_charge_that_is_large() {
    // The product of two distant functions is small, but its bound must not be zero.
    let shells = [sphere(0.5, [0.0; 3], 0), sphere(0.5, [0.0, 0.0, 11.0], 1)];
    let far = &pairs(&shells, false).0[1];
    let overlap = moments(&shells, false).overlap.get(0, 1);
    assert!(overlap < 1e-12 && far.bound > 0.1 * overlap, "{} {overlap}", far.bound);
}
