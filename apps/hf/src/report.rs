//! Report on a calculation, as text and as CSV.
//!
//! It computes only ratios, and knows no places. Invariant: the same calculation gives the same bytes, except for the
//! imbalance.

use super::scf::{Iteration, Properties, Stability};
use super::verify::Golden;
use isles_app::frame::count;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Electronvolts per hartree: CODATA 2018.
const ELECTRONVOLTS: f64 = 27.211_386_245_988;

/// Number of orbitals shown on each side of the gap.
const ORBITALS_SHOWN: usize = 3;

/// Result of a calculation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HfFound {
    /// Total energy, in hartree.
    pub(super) energy: f64,
    #[serde(flatten)]
    pub(super) properties: Properties,
    pub(super) iterations: Vec<Iteration>,
    /// Stability of the energy; `None` if no lower energy was searched for.
    pub(super) stability: Option<Stability>,
    /// Reason why the stability was not examined, if so.
    #[serde(skip)]
    pub(super) unchecked: Option<&'static str>,
    /// Ratio of the longest computing time of a place to the mean.
    pub(super) imbalance: Option<f64>,
    /// Threshold of convergence of the energy, in hartree.
    #[serde(skip)]
    pub(super) convergence: f64,
    /// `true` if only a stable solution is accepted.
    #[serde(skip)]
    pub(super) is_stable_wanted: bool,
    /// Energy computed by another program for the same calculation, if known.
    #[serde(skip)]
    pub(super) golden: Option<&'static Golden>,
}

impl HfFound {
    /// Returns a message if the energy of `method` did not converge, or if a stable solution is required but was not
    /// reached.
    pub(super) fn unconverged(&self, method: &str) -> Option<String> {
        if self.iterations.last().is_some_and(|last| last.is_converged(self.convergence)) {
            let unstable = self.stability.filter(|known| known.is_stable != Some(true));
            return unstable.filter(|_| self.is_stable_wanted).map(|known| {
                let energy = self.energy;
                format!("the energy of {method} converged to {energy:.9}, but it {}", stability_text(&known))
            });
        }
        let first = self.iterations.len().saturating_sub(ORBITALS_SHOWN);
        let line = |one: &Iteration| {
            format!("{:.9} (iteration {}, gradient {:.1e})", one.energy, one.iteration, one.gradient)
        };
        let last: Vec<String> = self.iterations[first..].iter().map(line).collect();
        let number = count(self.iterations.len() as u64, "iteration", "iterations");
        let limit = self.convergence;
        Some(format!(
            "the energy of {method} did not converge to {limit:.0e} hartree in {number}: {}",
            last.join(", ")
        ))
    }

    /// Returns the result as text.
    pub(super) fn text(&self) -> String {
        let HfFound { properties, imbalance, stability, unchecked, .. } = self;
        let mut text = format!("{:>9}  {:>18}  {:>11}  {:>8}\n", "iteration", "energy", "change", "gradient");
        for Iteration { iteration, energy, change, gradient } in &self.iterations {
            let _ = writeln!(text, "{iteration:>9}  {energy:>18.10}  {change:>11.2e}  {gradient:>8.1e}"); // a string takes all
        }
        let [x, y, z] = properties.dipole;
        let gap = match properties.gap {
            Some(gap) => format!("{gap:.6} hartree, {:.3} electronvolts", gap * ELECTRONVOLTS),
            None => "none: all orbitals are occupied".to_owned(),
        };
        let imbalance = imbalance.map_or(String::new(), |imbalance| {
            format!("\nimbalance  {imbalance:.3} (the busiest place over the mean of all)")
        });
        let stability = stability.map_or_else(
            || unchecked.map_or(String::new(), |why| format!("\nstability  not checked: {why}")),
            |known| {
                let advice =
                    if known.is_stable == Some(true) { "" } else { "; --stable continues to a stable one" };
                format!("\nstability  it {}{advice}", stability_text(&known))
            },
        );
        text + &format!(
            "\n{}\nenergy     {:.10} hartree, {:.10} of it between the nuclei\n\
             gap        {gap}\ndipole     {:.4} debye ({x:.4}, {y:.4}, {z:.4}){stability}{imbalance}",
            self.orbitals(),
            self.energy,
            properties.nuclear_repulsion,
            properties.dipole_length(),
        )
    }

    /// Returns the orbitals around the gap as text.
    fn orbitals(&self) -> String {
        let Properties { orbital_energies, occupied, .. } = &self.properties;
        let shown =
            occupied.saturating_sub(ORBITALS_SHOWN)..(occupied + ORBITALS_SHOWN).min(orbital_energies.len());
        let mut text = format!("{:>7}  {:>11}\n", "orbital", "energy");
        for index in shown {
            let name = match index {
                index if index + 1 == *occupied => "  highest occupied",
                index if index == *occupied => "  lowest unoccupied",
                _ => "",
            };
            let _ = writeln!(text, "{:>7}  {:>11.6}{name}", index + 1, orbital_energies[index]);
        }
        text
    }

    /// Writes a line for each iteration.
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "iteration,energy,change,gradient")?;
        for Iteration { iteration, energy, change, gradient } in &self.iterations {
            writeln!(out, "{iteration},{energy},{change},{gradient}")?;
        }
        Ok(())
    }
}

/// Returns the end of a sentence on the stability of an energy.
fn stability_text(known: &Stability) -> String {
    let Stability { is_stable, eigenvalue, builds } = *known;
    match is_stable {
        Some(true) => format!("is a minimum (least curvature {eigenvalue:.4} hartree)"),
        Some(false) => format!(
            "is not a minimum: a lower energy is near (curvature {eigenvalue:.4} \
             hartree)"
        ),
        None => {
            format!("is not known to be a minimum after {builds} builds (curvature {eigenvalue:.4} hartree)")
        }
    }
}
