//! RDF queries on the SCC: the task-parallel workloads of the paper, one master and 47 workers over RCKMPI.
//!
//! A query of table II is modelled by its columns: its share of the processor is work, and its footprint is read from
//! the chip's file server. That server was calibrated on one query and on one speed-up; the others are predictions.
//! Queries are divided into slices, so that reading and computing alternate. Invariant: every row could come out on the
//! wrong side.

use super::super::quantity::{Quantity, Title};
use super::super::row::{Band, Basis, Family, Row};
use super::super::{Experiment, RowSource};
use super::CORES;
use isles::prelude::*;
use isles::{Launch, ModelledChip, Protocol};
use isles_app::Failure;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;

/// Table II and the task-parallel figures.
pub const RDF: Experiment = Experiment {
    name: "rdf",
    about: "RDF queries from a server of files: serial times, speed-ups of pools over 47 workers, at 800/1600/1066",
    source: "Slavov, Rao, Barenkala and Paturi, parallel RDF query processing on the SCC, MARC 2012, paper 3",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// Cycles of a core per second.
const HERTZ: f64 = 800e6;

/// Number of bytes of a file that are read between two slices of work.
const SLICE_BYTES: usize = 1 << 20;

/// A query of table II: its name, its footprint in KiB, its share of the processor in per cent, and its serial time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TableQuery {
    number: u32,
    kib: u32,
    percent: f64,
    seconds: f64,
}

const fn query(number: u32, kib: u32, percent: f64, seconds: f64) -> TableQuery {
    TableQuery { number, kib, percent, seconds }
}

/// A data set of the paper: its small queries, its large ones, the number of times that the large ones are in the pool
/// of a run, and the published speed-up for the small ones.
struct DataSet {
    name: &'static str,
    small: &'static [TableQuery],
    large: &'static [TableQuery],
    large_rounds: usize,
    small_speedup: f64,
}

/// Number of times that small queries are in the pool of a run.
const SMALL_ROUNDS: usize = 100;

/// Query on which a core's needs of the file server were calibrated.
const CALIBRATION: (&str, u32) = ("YAGO", 5);

const DATA_SETS: [DataSet; 3] = [
    DataSet {
        name: "YAGO",
        small: &[
            query(1, 14_756, 29.0, 4.73),
            query(2, 15_004, 40.0, 9.23),
            query(3, 22_832, 29.0, 6.51),
            query(4, 33_492, 21.0, 9.27),
        ],
        large: &[
            query(5, 216_564, 22.0, 82.65),
            query(6, 272_848, 30.0, 120.08),
            query(7, 332_944, 43.0, 218.43),
        ],
        large_rounds: 33,
        small_speedup: 34.92,
    },
    DataSet {
        name: "LUBM",
        small: &[query(1, 2_668, 25.0, 1.4), query(2, 3_132, 35.0, 1.47), query(3, 9_804, 19.0, 3.5)],
        large: &[query(4, 636_204, 32.0, 299.99), query(5, 673_924, 29.0, 206.58)],
        large_rounds: 50,
        small_speedup: 32.74,
    },
    DataSet {
        name: "Uniprot",
        small: &[query(1, 4_468, 39.0, 2.08), query(2, 10_344, 39.0, 6.46)],
        large: &[
            query(3, 48_020, 31.0, 19.39),
            query(4, 62_188, 19.0, 15.48),
            query(5, 166_808, 17.0, 43.51),
        ],
        large_rounds: 33,
        small_speedup: 32.27,
    },
];

impl TableQuery {
    /// Returns the seconds that the query uses the processor.
    fn busy(&self) -> f64 {
        self.seconds * self.percent / 100.0
    }

    /// Answers the query at this place.
    async fn answer(&self, file: &str) {
        let bytes = self.kib as usize * 1_024;
        let slices = bytes.div_ceil(SLICE_BYTES);
        let cycles = (self.busy() * HERTZ / slices as f64) as u64;
        for slice in 0..slices {
            isles::io::note_read(file, SLICE_BYTES.min(bytes - slice * SLICE_BYTES));
            work(Cycles(cycles));
            yield_now().await; // others ask the server meanwhile
        }
    }
}

/// Runs a program on `places` cores of the SCC and returns the seconds that it reports.
fn run<F>(places: u32, main: impl FnOnce(Rc<Cell<f64>>) -> F) -> Result<f64, Failure>
where
    F: Future<Output = isles::Result<()>> + 'static,
{
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let launch = Launch::from_environment().map_err(|error| usage(&error))?;
    let launch = launch.places(places).protocol(Protocol::Sections);
    let chip = ModelledChip::new("scc").and_then(|chip| chip.with_preset("800/1600/1066"));
    let chip = chip.map_err(|error| usage(&error))?;
    let seconds = Rc::new(Cell::new(0.0));
    let elapsed = Rc::clone(&seconds);
    let (result, ..) = launch.run_on_chip(chip, move || main(elapsed)).map_err(|error| usage(&error))?;
    result.map_err(Failure::Run)?;
    Ok(seconds.get())
}

/// Returns the seconds of one core for a query if the server has the file in its memory.
fn alone(data: &'static str, query: TableQuery) -> Result<f64, Failure> {
    run(1, move |elapsed| async move {
        isles::io::note_read(data, 0); // nobody has found the file on the disk before
        let started = now();
        query.answer(data).await;
        elapsed.set((now() - started).as_secs_f64());
        Ok(())
    })
}

/// Returns the seconds that `cores` cores, of which the first one deals, take for a pool of queries in order: algorithm
/// 1 of 004:423, where each worker asks for the next query when it has answered one.
fn pool(
    data: &'static str,
    queries: &'static [TableQuery],
    rounds: usize,
    cores: u32,
) -> Result<f64, Failure> {
    run(cores, move |elapsed| async move {
        isles::io::note_read(data, 0);
        let (next, last) = (Counter::new(), (queries.len() * rounds) as u64);
        let (queries, file) = (queries.to_vec(), data.to_owned());
        let started = now();
        finish(async {
            for place in places().skip(1) {
                let (next, queries, file) = (&next, &queries, &file);
                spawn_at!(place, {
                    while let Some(number) = next.take_below(last).await? {
                        queries[number as usize % queries.len()].answer(file).await;
                    }
                    Ok::<_, isles::Error>(())
                });
            }
        })
        .await?;
        elapsed.set((now() - started).as_secs_f64());
        Ok(())
    })
}

const SERIAL: Family = Family {
    deck: "",
    unit: "s",
    band: Band::Within(25.0),
    basis: Basis::Predicted,
    source: "004:542-560",
    reading: "",
};
const SPEEDUP: Family = Family {
    deck: "",
    unit: "",
    band: Band::Within(15.0),
    basis: Basis::Predicted,
    source: "004:584",
    reading: "",
};
const SHAPE: Family = Family { band: Band::AtMost, ..SPEEDUP };

fn rows() -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let mut pools = Vec::new();
    for data in &DATA_SETS {
        let mut serial = [0.0, 0.0];
        for (total, queries) in serial.iter_mut().zip([data.small, data.large]) {
            for query in queries {
                let seconds = alone(data.name, *query)?;
                *total += seconds;
                let is_calibration = CALIBRATION == (data.name, query.number);
                let basis = if is_calibration { Basis::Calibrated } else { Basis::Predicted };
                let title = format!("{} query {} alone", data.name, query.number);
                rows.push(Family { basis, ..SERIAL }.row(Title::from(title), query.seconds, seconds));
            }
        }
        pools.push(PoolRuns::measure(data, serial)?);
    }
    pools.iter().for_each(|pools| pools.rows(&mut rows));
    let falls =
        |data: &str| pools.iter().find(|pools| pools.data.name == data).map_or(f64::NAN, PoolRuns::fall);
    let higher = SHAPE.at("004:591").reading("≤ 1: “higher for LUBM and Uniprot as compared to YAGO”");
    for data in ["LUBM", "Uniprot"] {
        let title = format!("large queries, processor use on {CORES} cores / 2: {data} / YAGO");
        rows.push(higher.row(Title::from(title), 1.0, falls(data) / falls("YAGO")));
    }
    Ok(rows)
}

/// The pools of a data set, of small queries and of large ones, on 2 cores, which means one worker, and on all.
struct PoolRuns {
    data: &'static DataSet,
    /// Seconds of one core alone.
    serial: [f64; 2],
    two: [f64; 2],
    all: [f64; 2],
}

impl PoolRuns {
    fn measure(data: &'static DataSet, rounds: [f64; 2]) -> Result<PoolRuns, Failure> {
        let times = [SMALL_ROUNDS, data.large_rounds];
        let [small, large] = [data.small, data.large];
        let on = |cores| {
            Ok::<_, Failure>([
                pool(data.name, small, times[0], cores)?,
                pool(data.name, large, times[1], cores)?,
            ])
        };
        let serial = [rounds[0] * times[0] as f64, rounds[1] * times[1] as f64];
        Ok(PoolRuns { data, serial, two: on(2)?, all: on(CORES)? })
    }

    fn speedup(&self, kind: usize) -> f64 {
        self.serial[kind] / self.all[kind]
    }

    /// Returns the ratio of the processor utilization of the large queries on all cores to that on two.
    fn fall(&self) -> f64 {
        let workers = f64::from(CORES - 1);
        self.two[1] / (self.all[1] * workers)
    }

    fn rows(&self, rows: &mut Vec<Row>) {
        let data = self.data;
        let title = |what: &str| Title::from(format!("{}, {what}", data.name)).over(Quantity::cores(CORES));
        // The rate of the server for all cores is the smallest that this speed-up of YAGO needs.
        let basis = if data.name == CALIBRATION.0 { Basis::Calibrated } else { Basis::Predicted };
        let speedup = Family { basis, ..SPEEDUP };
        rows.push(speedup.row(title("small queries, speed-up"), data.small_speedup, self.speedup(0)));
        let large = self.speedup(1);
        let at_least = Family { basis: Basis::Derived, ..SHAPE.at("004:591") };
        let at_least = at_least.reading("≤ 1: “the speedup ranged between 25 to 30”");
        rows.push(at_least.row(title("large queries, least published, 25 / speed-up"), 1.0, 25.0 / large));
        rows.push(at_least.row(title("large queries, speed-up / most published, 30"), 1.0, large / 30.0));
        let less = SHAPE.at("004:606").reading("≤ 1: “gave better results than the LT model”");
        rows.push(less.row(title("speed-up of large queries / small ones"), 1.0, large / self.speedup(0)));
        let even = Family { band: Band::Within(10.0), basis: Basis::Derived, ..SHAPE.at("004:589") };
        let even = even.reading("1: “the average CPU utilization varied marginally”");
        let workers = f64::from(CORES - 1);
        let used = self.two[0] / (self.all[0] * workers);
        rows.push(even.row(title("small queries, processor use / on 2"), 1.0, used));
    }
}
