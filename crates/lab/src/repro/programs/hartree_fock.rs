//! Hartree-Fock on the modelled SCC, as X10's program ran there: benzene by number of cores, protocol and balance.
//!
//! Each row is a run of `isles run hf` of its own, which iterates until it has the energy of PySCF. Our source tells
//! the shapes of its figures, not their numbers, so speed-ups stand alone and the shapes are ratios.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::{document, seconds};
use isles::Protocol;
use isles_app::{Failure, runs};

/// The figures of the energy of benzene.
pub const HARTREE_FOCK: Experiment = Experiment {
    name: "hf",
    about: "Hartree-Fock energy of benzene: how many times faster than one core, at 533/800/800",
    source: "X10 on the SCC (2011), shapes only: rcce-x10 first, sockets last; a counter dear on few cores, level on 48",
    instructions: "",
    rows: RowSource::Runs(hartree_fock),
};

/// Numbers of cores beside one: few, and all of them.
const MANY: [u32; 6] = [FEW, 4, 8, 16, 32, CORES];
const FEW: u32 = 2;
const CORES: u32 = 48;

/// How messages cross the chip, in the order in which they are taken to scale, best first.
const PROTOCOLS: [Protocol; 3] = [Protocol::RcceX10, Protocol::Sections, Protocol::Sockets];

/// How units are assigned, in words of the command.
const BALANCES: [&str; 2] = [BEFOREHAND, "dynamic"];
const BEFOREHAND: &str = "static";

/// Speed-ups by balance, number of cores and protocol.
type Speedups = [[[f64; PROTOCOLS.len()]; MANY.len()]; BALANCES.len()];

fn hartree_fock() -> Result<Vec<Row>, Failure> {
    let (mut rows, mut shapes) = (Vec::new(), Vec::new());
    // How often a place gives way was chosen with the counter's cost for the smaller set in view.
    for (set, basis) in [("sto-3g", Basis::Calibrated), ("3-21g", Basis::Predicted)] {
        let speedups = scaling(set, &mut rows)?;
        shapes.extend(order_of_protocols(set, &speedups));
        shapes.extend(cost_of_the_counter(set, basis, &speedups));
    }
    rows.extend(shapes);
    Ok(rows)
}

/// The rows of one basis set.
fn scaling(set: &str, rows: &mut Vec<Row>) -> Result<Speedups, Failure> {
    let alone = Family { deck: "", unit: "", band: Band::Unpublished, basis: Basis::Predicted, source: "" };
    let many = BALANCES.into_iter().flat_map(|balance| {
        let cores = MANY.into_iter();
        cores.flat_map(move |cores| PROTOCOLS.map(|protocol| (balance, cores, protocol)))
    });
    let all: Vec<_> = [(BEFOREHAND, 1, Protocol::RcceX10)].into_iter().chain(many).collect();
    let times = runs::all(all.len(), "runs", |number| predicted(set, all[number]))?;
    let one = times[0];
    rows.push(Family { unit: "s", ..alone }.row(format!("{set}, time of 1 core"), f64::NAN, one));
    let mut speedups = Speedups::default();
    let of_many = speedups.iter_mut().flatten().flatten();
    for (speedup, ((balance, cores, protocol), time)) in of_many.zip(all.iter().zip(&times).skip(1)) {
        *speedup = one / time;
        let title = Title::from(set).and(balance).over(Quantity::cores(*cores)).and(protocol);
        rows.push(alone.row(title, f64::NAN, *speedup));
    }
    Ok(speedups)
}

/// That the first protocol is ahead and the last behind at all numbers of cores, as ratios that are at most one.
fn order_of_protocols(set: &str, speedups: &Speedups) -> Vec<Row> {
    let family =
        Family { deck: "", unit: "", band: Band::AtMost, basis: Basis::Predicted, source: "000:220" };
    let mut rows = Vec::new();
    for (balance, by_cores) in BALANCES.into_iter().zip(speedups) {
        let most = |ratio: fn(&[f64; 3]) -> f64| by_cores.iter().map(ratio).fold(0.0, f64::max);
        let ahead = most(|[first, second, third]| second.max(*third) / first);
        let behind = most(|[first, second, third]| third / first.min(*second));
        rows.push(family.row(
            format!("{set}, {balance}, the best other protocol against rcce-x10"),
            1.0,
            ahead,
        ));
        rows.push(family.row(
            format!("{set}, {balance}, sockets against the worst other protocol"),
            1.0,
            behind,
        ));
    }
    rows
}

/// That a counter costs something on few cores, and as much as it wins on all of them.
fn cost_of_the_counter(set: &str, basis: Basis, [beforehand, dynamic]: &Speedups) -> [Row; 2] {
    let ratio = |index: usize| dynamic[index][0] / beforehand[index][0];
    let dear = Family { deck: "", unit: "", band: Band::AtMost, basis, source: "000:220" };
    let level = Family { band: Band::Within(10.0), ..dear };
    [
        dear.row(format!("{set}, rcce-x10, dynamic against static (on {FEW} cores)"), 1.0, ratio(0)),
        level.row(
            format!("{set}, rcce-x10, dynamic against static (on {CORES} cores)"),
            1.0,
            ratio(MANY.len() - 1),
        ),
    ]
}

/// Seconds that a run takes on the chip, from the first build to the last.
fn predicted(set: &str, (balance, cores, protocol): (&str, u32, Protocol)) -> Result<f64, Failure> {
    let words = format!(
        "--molecule benzene --basis {set} --balance {balance} --machine chip:scc --places {cores} --protocol {protocol}"
    );
    seconds("hf", &document("hf", &words)?)
}
