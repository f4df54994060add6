//! The two-electron part of the Fock matrix, built directly: integrals are computed, used and discarded.
//!
//! A [`FockBuilder`] holds the data of a place: the pairs of shells, a density, and the sums of its units. It knows no
//! other places. Quartets are screened by Schwarz's bound with the largest elements of the density that they are
//! multiplied by (M. Häser, R. Ahlrichs, J. Comput. Chem. 10, 104 (1989)), so a small change of a density takes little
//! time. Invariant: the contribution of a unit depends on the shells and the density only, so the sum of all units
//! does not depend on which place computed which.

mod digest;
mod fixed_point;
mod unit;

pub use unit::{UnitKets, WorkUnit, units};

use super::basis::shell::Shell;
use super::integrals::{Operations, PRIMITIVES_MIN, Repulsion, ShellPair, one_electron, pairs};
use super::matrix::Matrix;
use digest::Panels;
use fixed_point::{FixedPointSums, mean};
use serde::{Deserialize, Serialize};

/// Bound in hartree below which a quartet's contribution to any element is neglected.
const NEGLIGIBLE: f64 = 1e-13;

/// The functions of a molecule, as needed by a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Functions {
    /// The shells, in order of the atoms.
    pub shells: Vec<Shell>,
    /// `true` if d shells have six functions.
    pub is_cartesian: bool,
}

/// Builds the two-electron part of Fock matrices, unit by unit.
pub struct FockBuilder {
    shells: usize,
    pairs: Vec<ShellPair>,
    preparation: Operations,
    density: Matrix,
    /// The largest element of the density for each unordered pair of shells.
    largest: Vec<f64>,
    sums: FixedPointSums,
    panels: Panels,
    repulsion: Repulsion,
}

/// Work of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitEffort {
    /// Examined quartets of shells, including the computed ones.
    pub candidates: u64,
    /// Quartets whose integrals were computed.
    pub quartets: u64,
    /// Operations of the integrals.
    pub operations: Operations,
    /// Number of integrals, each multiplied by six elements of the density.
    pub integrals: u64,
    /// Bytes of pairs read.
    pub pair_bytes: u64,
    /// Elements added to the sums of the place.
    pub elements: u64,
}

/// A unit in progress; see [`FockBuilder::begin_unit`].
pub struct ActiveUnit {
    bra: usize,
    kets: UnitKets,
    is_over: bool,
}

impl UnitEffort {
    /// Adds the effort of another unit or part.
    fn add(&mut self, other: &UnitEffort) {
        self.candidates += other.candidates;
        self.quartets += other.quartets;
        self.operations.add(other.operations);
        self.integrals += other.integrals;
        self.pair_bytes += other.pair_bytes;
        self.elements += other.elements;
    }
}

impl FockBuilder {
    /// Prepares the pairs of shells; the density is zero.
    pub fn new(functions: &Functions) -> FockBuilder {
        let size = one_electron::functions(&functions.shells);
        let (pairs, preparation) = pairs(&functions.shells, functions.is_cartesian);
        FockBuilder {
            shells: functions.shells.len(),
            density: Matrix::zero(size),
            largest: vec![0.0; pairs.len()],
            sums: FixedPointSums::zero(size),
            panels: Panels::default(),
            repulsion: Repulsion::new(PRIMITIVES_MIN),
            pairs,
            preparation,
        }
    }

    /// Returns the pairs of shells.
    pub fn pairs(&self) -> &[ShellPair] {
        &self.pairs
    }

    /// Returns the operations spent on the bounds of the pairs.
    pub fn preparation(&self) -> Operations {
        self.preparation
    }

    /// Returns the number of shells.
    pub fn shells(&self) -> usize {
        self.shells
    }

    /// Returns the bytes kept between builds: the pairs of shells, and two matrices.
    pub fn bytes(&self) -> u64 {
        let pairs: u64 = self.pairs.iter().map(|pair| size_of_val(pair) as u64 + pair.bytes()).sum();
        let size = self.density.size();
        pairs + (size_of_val(&*self.largest) + 2 * size * size * size_of::<f64>()) as u64
    }

    /// Begins a build for a symmetric density, given row by row up to the diagonal.
    pub fn begin(&mut self, packed: &[f64]) {
        let size = self.density.size();
        let mut elements = packed.iter();
        for row in 0..size {
            for column in 0..=row {
                let element = elements.next().expect("an element for each place up to the diagonal");
                self.density.set_both([row, column], *element);
            }
        }
        let density = &self.density;
        for (largest, pair) in self.largest.iter_mut().zip(&self.pairs) {
            let [row, column] = pair.first;
            let rows =
                (row..row + pair.functions[0]).map(|row| &density.row(row)[column..][..pair.functions[1]]);
            *largest = rows.flatten().fold(0.0, |largest, element| element.abs().max(largest));
        }
        self.sums.clear();
    }

    /// Adds the contributions of a unit to the sums of this place.
    pub fn add_unit(&mut self, unit: WorkUnit) -> UnitEffort {
        let mut active_unit = self.begin_unit(unit);
        let mut effort = UnitEffort::default();
        while let Some(part) = self.advance_unit(&mut active_unit, usize::MAX) {
            effort.add(&part);
        }
        effort
    }

    /// Begins a unit, which [`FockBuilder::advance_unit`] adds part by part; the previous one must be complete.
    pub fn begin_unit(&mut self, unit: WorkUnit) -> ActiveUnit {
        self.panels.clear(&self.pairs[unit.bra], self.density.size());
        ActiveUnit { bra: unit.bra, kets: unit.kets(), is_over: false }
    }

    /// Adds the contributions of the next quartets of `unit`, until the integrals of `quartets` of them are computed.
    /// Returns `None` if the unit is complete.
    pub fn advance_unit(&mut self, unit: &mut ActiveUnit, quartets: usize) -> Option<UnitEffort> {
        if unit.is_over {
            return None;
        }
        let mut effort = UnitEffort::default();
        while effort.quartets < quartets as u64 {
            let Some(ket) = unit.kets.next() else {
                self.end_unit(unit.bra, &mut effort);
                unit.is_over = true;
                break;
            };
            self.add_quartet(unit.bra, ket, &mut effort);
        }
        Some(effort)
    }

    /// Adds the contributions of a quartet to the panels of the bra and the sums.
    fn add_quartet(&mut self, bra_number: usize, ket_number: usize, effort: &mut UnitEffort) {
        let [bra, ket] = [bra_number, ket_number].map(|number| &self.pairs[number]);
        effort.candidates += 1;
        if bra.bound * ket.bound * max_density(&self.largest, [bra, ket]) < NEGLIGIBLE {
            return;
        }
        let (integrals, operations) = self.repulsion.block(bra, ket);
        // Up to eight quartets are equal; one of each symmetric pair of elements is written, and folding halves them.
        let orders = |pair: &ShellPair| if pair.shells[0] == pair.shells[1] { 1.0 } else { 2.0 };
        let same = if bra_number == ket_number { 0.5 } else { 1.0 };
        self.panels.add(integrals, same * orders(bra) * orders(ket), [bra, ket], &self.density);
        for (row, sums) in self.panels.ket[..ket.components()].chunks_exact(ket.functions[1]).enumerate() {
            self.sums.add(ket.first[0] + row, ket.first[1], sums.iter().copied());
        }
        effort.quartets += 1;
        effort.operations.add(operations);
        effort.integrals += (bra.components() * ket.components()) as u64;
        effort.pair_bytes += ket.bytes();
        effort.elements += ket.components() as u64;
    }

    /// Adds the panels of a bra to the sums.
    fn end_unit(&mut self, bra: usize, effort: &mut UnitEffort) {
        let (bra, size) = (&self.pairs[bra], self.density.size());
        for (row, sums) in self.panels.coulomb.chunks_exact(bra.functions[1]).enumerate() {
            self.sums.add(bra.first[0] + row, bra.first[1], sums.iter().copied());
        }
        for (first, rows) in bra.first.into_iter().zip(&self.panels.exchange) {
            for (row, sums) in rows.chunks_exact(size).enumerate() {
                self.sums.add(first + row, 0, sums.iter().map(|sum| -0.25 * sum));
            }
        }
        effort.elements += (bra.components() + size * (bra.functions[0] + bra.functions[1])) as u64;
    }

    /// Returns the sums of the units of this place, to be added to those of other places.
    pub fn sums(&self) -> Vec<i64> {
        self.sums.folded()
    }
}

/// Returns the two-electron part of the Fock matrix from the sums of all units.
pub fn matrix(size: usize, sums: &[i64]) -> Matrix {
    let mut matrix = Matrix::zero(size);
    let places = (0..size).flat_map(|row| (0..=row).map(move |column| [row, column]));
    places.zip(sums).for_each(|(place, sum)| matrix.set_both(place, mean(*sum)));
    matrix
}

/// Returns a symmetric matrix row by row up to the diagonal.
pub fn packed(matrix: &Matrix) -> Vec<f64> {
    (0..matrix.size()).flat_map(|row| &matrix.row(row)[..=row]).copied().collect()
}

/// Returns the largest element of the density that a quartet is multiplied by, those of the exchange halved.
fn max_density(largest: &[f64], [bra, ket]: [&ShellPair; 2]) -> f64 {
    let [i, j] = bra.shells;
    let [k, l] = ket.shells;
    let of = |one, other| largest[unit::pair_number(one, other)];
    let exchange = [of(i, k), of(i, l), of(j, k), of(j, l)].into_iter().fold(0.0, f64::max);
    of(i, j).max(of(k, l)).max(0.5 * exchange)
}
