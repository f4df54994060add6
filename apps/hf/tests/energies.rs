//! Energies of PySCF for molecules from equilibrium to bonds of three times their length (`energies.txt`).
//!
//! `energies.py` has written them, and says how. Each case is computed as with `--stable`. PySCF may find several
//! stable solutions from its guesses; the one found here must be one of them, to 1e-8 hartree.

use isles_hf::basis::{self, shell};
use isles_hf::element::Element;
use isles_hf::fock::{FockBuilder, Functions, WorkUnit, matrix, packed, units};
use isles_hf::matrix::Matrix;
use isles_hf::molecule::{ANGSTROM_PER_BOHR, Atom, Molecule};
use isles_hf::scf::{Guess, Scf};

/// Energies computed by PySCF.
const ENERGIES: &str = include_str!("energies.txt");

/// Largest difference of an energy from that of PySCF, in hartree.
const TOLERANCE: f64 = 1e-8;

/// Maximum number of iterations to a solution, more than the program's default.
const ITERATIONS_MAX: u32 = 200;

/// One line of the table.
struct Case<'a> {
    name: &'a str,
    stretch: &'a str,
    basis: &'a str,
    /// Energy from PySCF's own guess.
    plain: Option<f64>,
    /// The stable ones, lowest first.
    stable: Vec<f64>,
    molecule: Molecule,
}

impl Case<'_> {
    fn of(line: &str) -> Case<'_> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, stretch, basis, plain, stable, atoms @ ..] = words.as_slice() else {
            panic!("a line of the table: {line}")
        };
        let atom = |words: &[&str]| {
            let point = [1, 2, 3].map(|axis| words[axis].parse::<f64>().unwrap() / ANGSTROM_PER_BOHR);
            Atom { element: Element::parse(words[0]).unwrap(), point }
        };
        let atoms = atoms.chunks_exact(4).map(atom).collect();
        let molecule = Molecule { name: (*name).to_owned(), atoms, charge: 0 };
        let stable = stable.split(',').filter_map(|energy| energy.parse().ok()).collect();
        Case { name, stretch, basis, plain: plain.parse().ok(), stable, molecule }
    }

    fn title(&self) -> String {
        format!("{} {} {}", self.name, self.stretch, self.basis)
    }
}

/// A field with what builds it.
struct Calculation {
    scf: Scf,
    builder: FockBuilder,
}

impl Calculation {
    fn of(case: &Case<'_>) -> Calculation {
        let set = basis::open(case.basis, &case.molecule.elements()).unwrap();
        let shells = shell::shells(&case.molecule, &set, false).unwrap();
        let functions = Functions { shells, is_cartesian: false };
        let builder = FockBuilder::new(&functions);
        let scf = Scf::new(&case.molecule, &functions, &builder, case.basis, Guess::Atoms).unwrap();
        Calculation { scf, builder }
    }

    fn repulsion(&mut self, density: &Matrix) -> Matrix {
        self.builder.begin(&packed(density));
        for unit in 0..units(self.builder.shells()) {
            self.builder.add_unit(WorkUnit::new(unit, self.builder.shells()));
        }
        matrix(density.size(), &self.builder.sums())
    }

    /// The energy to which it converges, and in how many iterations.
    fn converged(&mut self) -> (f64, u32) {
        const CONVERGENCE: f64 = 1e-11;
        for number in 1..=ITERATIONS_MAX {
            let change = self.scf.density_change();
            let repulsion = self.repulsion(&change);
            let last = self.scf.advance(&repulsion, CONVERGENCE);
            if last.is_converged(CONVERGENCE) {
                return (last.energy, number);
            }
        }
        (f64::NAN, ITERATIONS_MAX)
    }

    /// Goes on from a converged energy to that of a stable solution.
    fn stable(&mut self, mut energy: f64) -> f64 {
        for _ in 0..10 {
            let Some(mut search) = self.scf.stability(200) else { return energy };
            let known = loop {
                let repulsion = self.repulsion(&search.density());
                if let Some(known) = search.advance(&repulsion) {
                    break known;
                }
            };
            if known.is_stable == Some(true) {
                return energy;
            }
            self.scf.follow(search);
            energy = self.converged().0;
        }
        f64::NAN
    }
}

/// Results of the cases of the table.
#[derive(Debug, Default)]
struct Outcome {
    cases: usize,
    /// Cases whose energy without `--stable` is that of PySCF from its own guess.
    same: usize,
    /// Cases whose stable energy is the lowest that PySCF finds.
    lowest: usize,
    wrong: Vec<String>,
}

fn compare(cases: impl Iterator<Item = Case<'static>>) -> Outcome {
    let mut outcome = Outcome::default();
    for case in cases {
        let mut calculation = Calculation::of(&case);
        let (plain, iterations) = calculation.converged();
        let energy = calculation.stable(plain);
        outcome.cases += 1;
        outcome.same += usize::from(case.plain.is_some_and(|own| (own - plain).abs() < TOLERANCE));
        let place = case.stable.iter().position(|own| (own - energy).abs() < TOLERANCE);
        outcome.lowest += usize::from(place == Some(0));
        if place.is_none() {
            let (title, stable) = (case.title(), &case.stable);
            let line =
                format!("{title}: {plain:.10} after {iterations}, stable {energy:.10}, PySCF {stable:.10?}");
            println!("{line}");
            outcome.wrong.push(line);
        }
    }
    println!(
        "{} cases, {} with PySCF's own energy, {} wrong",
        outcome.cases,
        outcome.same,
        outcome.wrong.len()
    );
    outcome
}

#[test]
fn stable_energies_of_a_few_stretched_molecules_are_those_of_pyscf() {
    // Small ones: a debug build takes seconds.
    let is_small = |case: &Case<'_>| case.molecule.electrons() <= 10 && case.basis == "sto-3g";
    let outcome = compare(ENERGIES.lines().map(Case::of).filter(is_small));
    assert!(outcome.wrong.is_empty() && outcome.cases == 35, "{outcome:?}");
}

#[test]
#[ignore = "two minutes in a release build; for the long run"]
fn stable_energies_of_all_stretched_molecules_are_those_of_pyscf() {
    let outcome = compare(ENERGIES.lines().map(Case::of));
    assert!(outcome.wrong.is_empty() && outcome.cases == 600, "{outcome:?}");
}
