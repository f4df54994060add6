//! `xtask map`: the crates know each other only as ARCHITECTURE.md says.
//!
//! The table of crates in ARCHITECTURE.md is the single source of the allowed edges: each row names a crate,
//! the crates of ours that it may use, and those that its tests may use besides. This file holds what no
//! row may allow (the rules of the cut), which crates alone may use certain foreign ones, and what the
//! standard library must not offer to `protocol`. A circle between crates is Cargo's business; those inside a
//! crate are counted by [`circles`].

mod circles;
mod features;
mod imports;

use crate::finding::Finding;
use crate::lexer::Token;
use crate::manifest::{Stage, dependencies};
use crate::tree::{APPS, File, Tree};

const MAP: &str = "ARCHITECTURE.md";

/// An edge that no row may allow.
struct Rule {
    message: &'static str,
    breaks: fn(from: &str, to: &str) -> bool,
}

/// The rules of the cut, as edges of the product; tests are free of them where the table allows it.
const RULES: &[Rule] = &[
    Rule { message: "protocol uses nothing of ours", breaks: |from, _| from == "protocol" },
    Rule {
        message: "only the façade and the bench name concrete transports",
        breaks: |from, to| to.starts_with("transport-") && !matches!(from, "isles" | "bench"),
    },
    Rule {
        message: "a transport knows bytes, peers and handlers, no tasks",
        breaks: |from, to| {
            from.starts_with("transport") && !matches!(to, "protocol" | "transport" | "chip" | "trace")
        },
    },
    Rule {
        message: "of the transports, only that of modelled chips knows chips",
        breaks: |from, to| from.starts_with("transport") && from != "transport-chip" && to == "chip",
    },
    Rule { message: "the frame uses the façade only", breaks: |from, to| from == "app" && to != "isles" },
    Rule {
        message: "graphs use the façade and the frame only",
        breaks: |from, to| from == "graph" && !matches!(to, "isles" | "app"),
    },
    Rule { message: "nothing depends on the house checks", breaks: |_, to| to == "xtask" },
];

/// Crates that an application may use; applications have no rows of their own.
const OF_APPLICATIONS: &[&str] = &["isles", "app", "graph", "netcdf"];

/// The name for all applications in [`FOREIGN`].
const ALL_APPLICATIONS: &str = "apps";

/// Foreign packages and the only crates that may use them.
///
/// Those of tests are not for `isles`: whoever runs an example of it builds what its tests depend on.
const FOREIGN: &[(&str, &[&str])] = &[
    (
        "proptest",
        &[
            ALL_APPLICATIONS,
            "chip",
            "graph",
            "lab",
            "plot",
            "protocol",
            "rcce",
            "runtime",
            "services",
            "telemetry",
            "transport",
            "transport-chip",
            "transport-mpi",
            "transport-shm",
            "view",
        ],
    ),
    ("kvm-bindings", &["hypervisor"]),
    ("kvm-ioctls", &["hypervisor"]),
    ("svg", &["plot"]),
    ("trybuild", &["isles"]),
    ("hyper", &["dashboard"]),
    ("reqwest", &[]),
    ("tiny_http", &[]),
    ("tokio", &["bench", "dashboard"]),
    ("ureq", &[]),
    ("warp", &[]),
    ("mpi", &["transport-mpi"]),
];

/// Parts of the standard library that read a clock, start threads or touch the outside.
const IMPURE: &[&str] = &["env", "fs", "net", "os", "process", "thread"];

/// Types of the standard library that read a clock.
const CLOCKS: &[&str] = &["Instant", "SystemTime"];

/// One row of the table.
struct CrateRow {
    name: String,
    line: usize,
    product: Vec<String>,
    tests: Vec<String>,
    /// `true` for the row that all applications have.
    is_application: bool,
}

/// The findings about the tree, and about the features of packages, for which Cargo is asked.
pub fn check_with_features(tree: &Tree) -> Vec<Finding> {
    let mut findings = check(tree);
    findings.extend(features::check(tree));
    for (name, circle) in circles::largest(tree) {
        println!("largest import circle of `{name}`: {} files", circle.len());
    }
    findings
}

/// A line for each file of the largest import circle of the crate `name`.
pub fn circle(tree: &Tree, name: &str) -> Vec<String> {
    circles::describe(tree, name)
}

/// The findings about the tree.
fn check(tree: &Tree) -> Vec<Finding> {
    let rows = rows(tree);
    let mut findings = check_crate_list(tree, &rows);
    let is_app = |name: &String| tree.folder(name).starts_with(APPS);
    let rows: Vec<CrateRow> =
        rows.into_iter().chain(tree.crates().into_iter().filter(is_app).map(application)).collect();
    for row in &rows {
        findings.extend(forbidden_by_rule(row));
    }
    for name in tree.crates() {
        match dependencies(tree, &name) {
            Err(finding) => findings.push(finding),
            Ok(dependencies) => {
                for dependency in dependencies {
                    let message = forbidden_reason(&name, &dependency.package, dependency.stage, &rows);
                    let manifest = format!("{}/Cargo.toml", tree.folder(&name));
                    findings.extend(message.map(|message| Finding::new(&manifest, 0, message)));
                }
            }
        }
    }
    findings.extend(impurities(tree));
    findings.extend(unproven_transports(tree));
    findings.extend(circles::check(tree));
    findings
}

/// The rows of the table: cells `crate`, what it is, may use, tests may use, must not know.
fn rows(tree: &Tree) -> Vec<CrateRow> {
    let Some(map) = tree.file(MAP) else { return Vec::new() };
    let cells = map.lines().filter_map(|(line, text)| {
        let row = text.trim().strip_prefix("| `")?.strip_suffix('|')?;
        Some((line, row.split('|').map(str::trim).collect::<Vec<_>>()))
    });
    let of_crates = cells.filter(|(_, cells)| cells.len() == 5);
    of_crates
        .map(|(line, cells)| {
            let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(String::from).collect();
            let name = cells[0].trim_end_matches('`').to_string();
            CrateRow { name, line, product: quoted(cells[2]), tests: quoted(cells[3]), is_application: false }
        })
        .collect()
}

/// The row that each application would have.
fn application(name: String) -> CrateRow {
    CrateRow {
        name,
        line: 0,
        product: OF_APPLICATIONS.iter().map(|to| (*to).to_owned()).collect(),
        tests: Vec::new(),
        is_application: true,
    }
}

/// The crates of the map are the folders, no more and no fewer.
fn check_crate_list(tree: &Tree, rows: &[CrateRow]) -> Vec<Finding> {
    let mut folders = tree.crates();
    folders.retain(|name| !tree.folder(name).starts_with(APPS));
    let unknown = rows.iter().filter(|row| !folders.contains(&row.name));
    let unknown =
        unknown.map(|row| Finding::new(MAP, row.line, format!("there is no folder `crates/{}`", row.name)));
    let missing = folders.iter().filter(|folder| !rows.iter().any(|row| row.name == **folder));
    let missing = missing
        .map(|folder| Finding::new(MAP, 0, format!("`crates/{folder}` has no row in the table of crates")));
    unknown.chain(missing).collect()
}

fn forbidden_by_rule(row: &CrateRow) -> Vec<Finding> {
    let edges = row.product.iter().flat_map(|to| RULES.iter().map(move |rule| (to, rule)));
    let broken = edges.filter(|(to, rule)| (rule.breaks)(&row.name, to));
    broken
        .map(|(to, rule)| {
            Finding::new(MAP, row.line, format!("`{}` may not use `{to}`: {}", row.name, rule.message))
        })
        .collect()
}

/// Returns the reason why crate `name` may not depend on `package`, if it may not.
fn forbidden_reason(name: &str, package: &str, stage: Stage, rows: &[CrateRow]) -> Option<String> {
    let ours = package.strip_prefix("isles-").or((package == "isles").then_some("isles"));
    let Some(to) = ours else {
        let (_, allowed) = FOREIGN.iter().find(|(foreign, _)| *foreign == package)?;
        let is_app = rows.iter().any(|row| row.name == name && row.is_application);
        let welcome = allowed.contains(&name) || (is_app && allowed.contains(&ALL_APPLICATIONS));
        return (!welcome).then(|| format!("`{package}` is not for `{name}`; it belongs to {allowed:?}"));
    };
    let row = rows.iter().find(|row| row.name == name)?;
    let named = |list: &[String]| list.iter().any(|allowed| allowed == to);
    let welcome = named(&row.product) || (stage == Stage::Tests && named(&row.tests));
    let part = if stage == Stage::Tests { "the tests of " } else { "" };
    (!welcome).then(|| format!("{part}`{name}` may not use `{to}`: its row in {MAP} does not allow it"))
}

/// Uses of clocks, threads and the outside in `protocol`.
fn impurities(tree: &Tree) -> Vec<Finding> {
    let files = tree.files_ending("rs").filter(|file| file.path.starts_with("crates/protocol/src/"));
    files.flat_map(impurities_in).collect()
}

fn impurities_in(file: &File) -> Vec<Finding> {
    let code = &file.source.code;
    let product = (0..code.len()).filter(|at| !file.is_test_line(code[*at].line));
    let impure = product.filter(|at| {
        let is_any = |words: &[&str]| words.iter().any(|word| code[*at].is(word));
        is_any(CLOCKS) || (is_any(IMPURE) && comes_from_std(&code[..*at]))
    });
    impure
        .map(|at| {
            let message =
                format!("`protocol` must not know `{}`: its caller passes such values", code[at].text);
            Finding::new(&file.path, code[at].line, message)
        })
        .collect()
}

/// Returns `true` if a word after `before` is a path from `std`: `std::word` or inside `use std::{..}`.
fn comes_from_std(before: &[Token]) -> bool {
    let direct = before.len() >= 3 && before[before.len() - 3].is("std") && before[before.len() - 1].is(":");
    let statement = before.rsplit(|token| token.is(";")).next().unwrap_or_default();
    let inside_use = statement.iter().position(|token| token.is("use")).is_some_and(|at| {
        statement.get(at + 1).is_some_and(|token| token.is("std"))
            && statement.last().is_some_and(|token| [",", "{"].iter().any(|mark| token.is(mark)))
    });
    direct || inside_use
}

/// Concrete transports whose tests do not run the conformance suite.
fn unproven_transports(tree: &Tree) -> Vec<Finding> {
    let transports = tree.crates().into_iter().filter(|name| name.starts_with("transport-"));
    let unproven = transports.filter(|name| {
        let folder = format!("crates/{name}/");
        let mut files = tree.files_ending("rs").filter(|file| file.path.starts_with(&folder));
        !files.any(|file| file.source.code.iter().any(|token| token.is("conformance")))
    });
    unproven
        .map(|name| {
            Finding::new(&format!("crates/{name}"), 0, "the transport does not join the conformance suite")
        })
        .collect()
}

#[cfg(test)]
mod tests;
