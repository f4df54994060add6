//! Cost of a guest: the tables of the MetalSVM paper, beside a guest of the hypervisor on this host.
//!
//! The paper counts ticks of its processors, on a Celeron and on the SCC; ours are ticks of this host. All rows are
//! measured here and change with the host. A guest of ours has six of the eight rows of each table: `fork` and `vfork`
//! are refused inside it. The paper does not give the number of sweeps of its Jacobi, so those rows compare the guest
//! with the process and have no published figure.

use crate::repro::row::{Band, Basis, Family, Row};
use crate::repro::{Experiment, RowSource};
use isles_app::Failure;
use isles_app::companion::{GUEST, spawn_failure};
use isles_app::console;
use serde_json::Value;

/// Tables I to III of the paper, and the fastest context switches of its figure 3.
pub(crate) const SVM: Experiment = Experiment {
    name: "svm",
    about: "ticks of a guest on this host: switches, page faults, getpid, threads, Jacobi",
    source: "Reble, Galowicz, Lankes, Bemmerl, the bare-metal hypervisor MetalSVM, MARC 2012, paper 11",
    instructions: "",
    rows: RowSource::Runs(rows),
};

/// A row of the tables: the operation, its name in our output, and MetalSVM's ticks with the line of each.
struct TableRow {
    what: &'static str,
    ours: &'static str,
    published: [(f64, &'static str); 3],
}

/// Table I on a Celeron of 2 GHz, table II on the SCC, table III on the Celeron with a later kernel.
const TABLES: [&str; 3] = ["table I", "table II", "table III"];

const ROWS: [TableRow; 4] = [
    TableRow {
        what: "host-guest switch",
        ours: "hypercall",
        published: [(1_347.0, "004:2368"), (2_113.0, "004:2387"), (2_590.0, "004:2402")],
    },
    TableRow {
        what: "page fault",
        ours: "page_fault",
        published: [(31_978.0, "004:2369"), (867_676.0, "004:2388"), (43_985.0, "004:2403")],
    },
    TableRow {
        what: "getpid",
        ours: "getpid",
        published: [(626.0, "004:2370"), (191.0, "004:2389"), (595.0, "004:2404")],
    },
    TableRow {
        what: "pthread_create",
        ours: "thread",
        published: [(40_022_838.0, "004:2373"), (10_883_839.0, "004:2392"), (40_049_784.0, "004:2407")],
    },
];

const MEASURED: Family =
    Family { deck: "", unit: "ticks", band: Band::AtMost, basis: Basis::Measured, source: "", reading: "" };
const ALONE: Family = Family { band: Band::Unpublished, ..MEASURED };

/// Minimum number of ticks of a context switch of MetalSVM and of Linux on the SCC.
const SWITCHES: [(&str, f64, &str); 2] =
    [("MetalSVM's least", 2_100.0, "004:2347"), ("Linux's least", 6_400.0, "004:2347")];

fn rows() -> Result<Vec<Row>, Failure> {
    let found = measured()?;
    let host = &found["processor"];
    console::notice(format_args!("measured on {}", host.as_str().unwrap_or("a processor without a name")));
    let figure = |side: &str, name: &str| found[side][name].as_f64().unwrap_or(f64::NAN);
    let mut rows = Vec::new();
    for row in ROWS {
        for (table, (published, source)) in TABLES.into_iter().zip(row.published) {
            let title = format!("{}, {table}", row.what);
            rows.push(MEASURED.at(source).row(title, published, figure("guest", row.ours)));
        }
    }
    for (whose, published, source) in SWITCHES {
        let title = format!("least context switch between two guests, {whose}");
        rows.push(MEASURED.at(source).row(title, published, figure("guest", "context_switch")));
    }
    for (what, name) in [
        ("page fault in a process", "page_fault"),
        ("getpid in a process", "getpid"),
        ("a thread in a process", "thread"),
        ("least context switch between two threads", "context_switch"),
    ] {
        rows.push(ALONE.row(what, f64::NAN, figure("process", name)));
    }
    rows.push(ALONE.row("start of a guest", f64::NAN, figure("guest", "start")));
    let ratio = Family { unit: "", ..ALONE };
    for (what, name) in [
        ("Jacobi on 128² cells, a guest to a process", "jacobi_128"),
        ("Jacobi on 32² cells, a guest to a process", "jacobi_32"),
        ("two Jacobi on 128² cells on one processor, guests to processes", "two_jacobi_128"),
    ] {
        rows.push(ratio.row(what, f64::NAN, figure("guest", name) / figure("process", name)));
    }
    Ok(rows)
}

/// Runs the program of the hypervisor and returns its measurements.
fn measured() -> Result<Value, Failure> {
    let mut command = GUEST.command()?;
    let output = command.output().map_err(|cause| spawn_failure(&command, &cause))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Usage(said.trim().trim_start_matches("error: ").to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| Failure::Ended(format!("isles-guest: {error}")))
}
