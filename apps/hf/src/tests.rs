//! Energies of whole calculations against other programs.

use super::fock::{FockBuilder, Functions, WorkUnit, matrix, packed, units};
use super::molecule::Molecule;
use super::scf::{Guess, Properties, Scf, properties};
use super::{basis, molecule};

/// Threshold of convergence in these tests, in hartree.
const CONVERGENCE: f64 = 1e-11;

/// Runs a calculation at one place; returns its energy and properties.
fn calculated(molecule: &Molecule, set: &str, is_cartesian: bool) -> (f64, Properties) {
    let shells =
        basis::shell::shells(molecule, &basis::open(set, &molecule.elements()).unwrap(), is_cartesian)
            .unwrap();
    let functions = Functions { shells, is_cartesian };
    let mut builder = FockBuilder::new(&functions);
    let mut scf = Scf::new(molecule, &functions, &builder, set, Guess::Atoms).unwrap();
    loop {
        let change = scf.density_change();
        builder.begin(&packed(&change));
        for unit in 0..units(builder.shells()) {
            builder.add_unit(WorkUnit::new(unit, builder.shells()));
        }
        let last = scf.advance(&matrix(change.size(), &builder.sums()), CONVERGENCE);
        if last.is_converged(CONVERGENCE) {
            return (last.energy, properties(&scf, molecule));
        }
        assert!(last.iteration < 30, "{last:?}");
    }
}

fn energy(name: &str, charge: i32, set: &str, is_cartesian: bool) -> f64 {
    calculated(&molecule::open(name, charge).unwrap(), set, is_cartesian).0
}

#[test]
fn energies_of_small_molecules_are_those_of_pyscf() {
    for golden in super::verify::GOLDEN.iter().filter(|golden| golden.is_small()) {
        let found = energy(golden.molecule, 0, golden.basis, golden.is_cartesian);
        assert!((found - golden.energy).abs() < 1e-9, "{golden:?}: {found:.11}");
    }
}

#[test]
#[ignore = "a minute in a release build; for the long run"]
fn all_golden_energies_are_those_of_pyscf() {
    for golden in super::verify::GOLDEN {
        let found = energy(golden.molecule, 0, golden.basis, golden.is_cartesian);
        println!("{golden:?}: {:.1e}", found - golden.energy);
        assert!((found - golden.energy).abs() < 1e-9, "{golden:?}: {found:.11}");
    }
}

#[test]
fn ions_have_the_energies_of_pyscf() {
    // From PySCF 2.14, conv_tol 1e-13, at the geometries of the neutral molecules.
    let expected =
        [("h2o", 2, -74.163_842_658_58), ("nh3", -2, -55.037_720_533_39), ("ch4", -2, -39.145_589_243_89)];
    for (name, charge, energy_of_ion) in expected {
        let found = energy(name, charge, "3-21g", false);
        assert!((found - energy_of_ion).abs() < 1e-9, "{name} {charge}: {found:.11}");
    }
}

#[test]
fn water_has_the_orbitals_and_the_dipole_of_pyscf() {
    let water = molecule::open("h2o", 0).unwrap();
    let found = calculated(&water, "6-31g*", false).1;
    assert!((found.orbital_energies[found.occupied - 1] - -0.496_813_21).abs() < 1e-7);
    assert!((found.orbital_energies[found.occupied] - 0.209_254_33).abs() < 1e-7);
    assert_eq!((found.occupied, found.orbital_energies.len()), (5, 18));
    for (found, expected) in found.dipole.iter().zip([1.479_481_37, 0.125_188_02, 1.715_256_97]) {
        assert!((found - expected).abs() < 1e-5, "{found} debye"); // PySCF has a debye of another CODATA
    }
}

#[test]
fn a_molecule_that_is_moved_and_turned_has_the_same_energy() {
    let mut water = molecule::open("h2o", 0).unwrap();
    let before = calculated(&water, "6-31g*", false);
    let (sine, cosine) = 0.83_f64.sin_cos();
    for atom in &mut water.atoms {
        let [x, y, z] = atom.point;
        atom.point = [cosine * x - sine * z + 3.0, y - 2.0, sine * x + cosine * z + 1.0];
    }
    let after = calculated(&water, "6-31g*", false);
    assert!((before.0 - after.0).abs() < 1e-10);
    assert!((before.1.dipole_length() - after.1.dipole_length()).abs() < 1e-7);
}

#[test]
fn functions_that_depend_on_each_other_and_too_few_of_them_are_refused() {
    let water = molecule::open("h2o", -4).unwrap();
    let refused = |molecule: &Molecule, functions: &Functions| {
        let builder = FockBuilder::new(functions);
        Scf::new(molecule, functions, &builder, "sto-3g", Guess::Atoms).err().unwrap().to_string()
    };
    let shells =
        basis::shell::shells(&water, &basis::open("sto-3g", &water.elements()).unwrap(), false).unwrap();
    let few = Functions { shells: shells[..2].to_vec(), is_cartesian: false };
    assert_eq!(
        refused(&water, &few),
        "--basis sto-3g has 2 functions for 7 pairs of electrons; allowed: at least as many"
    );
    let mut twice = shells.clone();
    twice.extend(shells.into_iter().map(|mut shell| {
        shell.first += 7;
        shell
    }));
    let message = refused(&water, &Functions { shells: twice, is_cartesian: false });
    assert!(message.contains("the functions depend on each other"), "{message}");
}

#[test]
fn methane_pressed_to_half_its_size_has_the_energy_of_pyscf() {
    // The file of CH4 with its numbers read as bohr, as in other programs that ignore its line `units`.
    let mut methane = molecule::open("ch4", 0).unwrap();
    methane
        .atoms
        .iter_mut()
        .for_each(|atom| atom.point = atom.point.map(|length| length * 0.529_177_210_921_7));
    assert!((methane.nuclear_repulsion() - 25.181_729_531_673).abs() < 1e-10);
    let found = calculated(&methane, "sto-3g", false).0;
    assert!((found - -37.272_340_947_08).abs() < 1e-9, "{found:.11}");
}
