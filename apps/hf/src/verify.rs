//! Energies of other programs, for checking a result.
//!
//! All are from PySCF 2.14 with its built-in basis sets, which are those of this program, converged to 1e-12 hartree;
//! for benzene and aspirin in 3-21G and benzene in STO-3G, MPQC 2.3.1 agrees in all its ten decimals. Invariant: a
//! result is compared only with an energy of the same molecule, basis set, charge and kind of functions.

use super::molecule::Molecule;
use isles_app::frame::Verification;

/// Largest error of an energy, in hartree.
pub const TOLERANCE: f64 = 1e-9;

/// The energy of a molecule in a basis set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Golden {
    /// The built-in molecule, without a charge.
    pub molecule: &'static str,
    /// The built-in basis set.
    pub basis: &'static str,
    /// `true` if d shells have six functions.
    pub is_cartesian: bool,
    /// The total energy in hartree.
    pub energy: f64,
}

const fn spherical(molecule: &'static str, basis: &'static str, energy: f64) -> Golden {
    Golden { molecule, basis, is_cartesian: false, energy }
}

const fn cartesian(molecule: &'static str, basis: &'static str, energy: f64) -> Golden {
    Golden { molecule, basis, is_cartesian: true, energy }
}

/// All known energies.
pub const GOLDEN: &[Golden] = &[
    spherical("h2", "sto-3g", -1.065_999_462_14),
    spherical("h2", "3-21g", -1.071_953_457_01),
    spherical("h2", "6-31g*", -1.078_523_240_80),
    spherical("h2o", "sto-3g", -74.965_427_171_20),
    spherical("h2o", "3-21g", -75.585_072_640_06),
    spherical("h2o", "6-31g*", -76.007_198_683_43),
    cartesian("h2o", "6-31g*", -76.008_566_688_70),
    spherical("ch4", "sto-3g", -39.724_636_006_84),
    spherical("ch4", "3-21g", -39.975_048_919_08),
    spherical("ch4", "6-31g*", -40.193_115_595_14),
    cartesian("ch4", "6-31g*", -40.193_441_211_97),
    spherical("nh3", "sto-3g", -55.451_753_251_27),
    spherical("nh3", "3-21g", -55.870_805_875_99),
    spherical("nh3", "6-31g*", -56.183_651_086_26),
    cartesian("nh3", "6-31g*", -56.184_292_930_12),
    spherical("benzene", "sto-3g", -227.891_120_644_95),
    spherical("benzene", "3-21g", -229.419_371_186_86),
    spherical("benzene", "6-31g*", -230.702_490_088_24),
    cartesian("benzene", "6-31g*", -230.703_135_741_31),
    spherical("aspirin", "sto-3g", -636.634_460_052_83),
    spherical("aspirin", "3-21g", -641.337_067_475_43),
];

impl Golden {
    /// Returns `true` if a debug build computes it within a second.
    #[cfg(test)]
    pub(super) fn is_small(&self) -> bool {
        !["benzene", "aspirin"].contains(&self.molecule)
    }
}

/// Returns the energy computed by another program for this calculation, if known.
pub fn golden(molecule: &Molecule, basis: &str, is_cartesian: bool) -> Option<&'static Golden> {
    let is_same = |golden: &&Golden| {
        let same = golden.molecule == molecule.name && golden.basis.eq_ignore_ascii_case(basis);
        // Without d functions both kinds are the same.
        same && molecule.charge == 0 && (golden.is_cartesian == is_cartesian || golden.basis != "6-31g*")
    };
    GOLDEN.iter().find(is_same)
}

/// Compares an energy with the golden one, as closely as its convergence permits.
pub fn check(golden: &Golden, energy: f64, convergence: f64) -> Verification {
    let tolerance = TOLERANCE.max(10.0 * convergence);
    let difference = (energy - golden.energy).abs();
    let text = format!(
        "{difference:.1e} hartree from PySCF's {:.10}; allowed: at most {tolerance:.0e}",
        golden.energy
    );
    Verification { holds: difference <= tolerance, text }
}

#[cfg(test)]
mod tests {
    use super::super::molecule;
    use super::*;

    #[test]
    fn an_energy_is_found_for_what_it_was_computed_of_and_for_nothing_else() {
        let energy = |name, charge, basis, is_cartesian| {
            let molecule = molecule::open(name, charge).unwrap();
            golden(&molecule, basis, is_cartesian).map(|golden| golden.energy)
        };
        assert_eq!(energy("Benzene", 0, "sto-3g", false), Some(-227.891_120_644_95));
        assert_eq!(energy("benzene", 0, "sto-3g", true), Some(-227.891_120_644_95));
        assert_eq!(energy("h2o", 0, "6-31g*", true), Some(-76.008_566_688_70));
        assert_eq!(energy("h2o", 2, "sto-3g", false), None);
        assert_eq!(energy("h2o", 0, "other.nw", false), None);
    }

    #[test]
    fn an_energy_holds_up_to_what_its_convergence_allows() {
        let golden = &GOLDEN[0];
        let holds = |off: f64, convergence| check(golden, golden.energy + off, convergence).holds;
        assert!(holds(9e-10, 1e-10) && !holds(2e-9, 1e-10) && holds(-2e-9, 1e-9) && !holds(f64::NAN, 1e-9));
    }
}
