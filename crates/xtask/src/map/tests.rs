//! Trees that keep the map and trees that break it, one a rule.

use super::*;

const HEAD: &str =
    "| Crate | What it is | May use | Tests may use | Must not know |\n|---|---|---|---|---|\n";

/// A tree whose table has `rows` (name, product, tests) and whose manifests have `edges` (name, section, packages).
fn found(rows: &[(&str, &str, &str)], edges: &[(&str, &str, &[&str])], more: &[(&str, &str)]) -> Vec<String> {
    let rows =
        rows.iter().map(|(name, product, tests)| format!("| `{name}` | It. | {product} | {tests} | X |\n"));
    let mut files = vec![(MAP.to_string(), format!("{HEAD}{}", rows.collect::<String>()))];
    for (name, section, packages) in edges {
        let entries: String =
            packages.iter().map(|package| format!("{package} = {{ workspace = true }}\n")).collect();
        files.push((format!("crates/{name}/Cargo.toml"), format!("[{section}]\n{entries}")));
    }
    files.extend(more.iter().map(|(path, text)| (path.to_string(), text.to_string())));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    check(&Tree::of(&files)).iter().map(Finding::to_string).collect()
}

fn protocol(text: &str) -> Vec<String> {
    found(
        &[("protocol", "-", "-")],
        &[("protocol", "dependencies", &[])],
        &[("crates/protocol/src/a.rs", text)],
    )
}

#[test]
fn a_graph_that_keeps_to_the_table_passes() {
    let rows =
        [("protocol", "-", "-"), ("transport", "`protocol`", "-"), ("runtime", "`protocol`", "`transport`")];
    let edges: [(&str, &str, &[&str]); 3] = [
        ("protocol", "dependencies", &["serde"]),
        ("transport", "dependencies", &["isles-protocol"]),
        ("runtime", "dev-dependencies", &["isles-protocol", "isles-transport"]),
    ];
    assert_eq!(found(&rows, &edges, &[]), Vec::<String>::new());
}

#[test]
fn an_edge_outside_the_table_is_refused() {
    let rows = [("protocol", "-", "-"), ("runtime", "-", "-")];
    let edges: [(&str, &str, &[&str]); 2] =
        [("protocol", "dependencies", &[]), ("runtime", "dependencies", &["isles-protocol"])];
    let found = found(&rows, &edges, &[]);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("crates/runtime/Cargo.toml:0: `runtime` may not use `protocol`"),
        "{found:?}"
    );
}

#[test]
fn an_edge_for_tests_is_refused_in_the_product() {
    let rows = [("protocol", "-", "-"), ("runtime", "-", "`protocol`")];
    let edges: [(&str, &str, &[&str]); 2] =
        [("protocol", "dependencies", &[]), ("runtime", "dependencies", &["isles-protocol"])];
    assert_eq!(found(&rows, &edges, &[]).len(), 1);
}

#[test]
fn a_table_that_allows_what_no_crate_may_is_refused() {
    for (from, to) in [
        ("protocol", "transport"),
        ("runtime", "transport-shm"),
        ("transport-shm", "transport-mpi"),
        ("transport", "runtime"),
        ("transport-shm", "chip"),
        ("app", "runtime"),
        ("cli", "xtask"),
    ] {
        let rule = forbidden_by_rule(&CrateRow {
            name: from.to_string(),
            line: 1,
            product: vec![to.to_string()],
            tests: Vec::new(),
            is_application: false,
        });
        assert!(!rule.is_empty(), "{from} -> {to}");
    }
    for (from, to) in [
        ("isles", "transport-shm"),
        ("bench", "transport-shm"),
        ("transport-shm", "transport"),
        ("transport-chip", "chip"),
        ("app", "isles"),
    ] {
        let row = CrateRow {
            name: from.to_string(),
            line: 1,
            product: vec![to.to_string()],
            tests: vec!["transport-shm".to_string()],
            is_application: false,
        };
        assert!(forbidden_by_rule(&row).is_empty(), "{from} -> {to}");
    }
}

#[test]
fn the_table_and_the_folders_agree_in_both_directions() {
    let none: &[&str] = &[];
    assert_eq!(found(&[("gone", "-", "-")], &[], &[]).len(), 1);
    assert_eq!(found(&[], &[("fresh", "dependencies", none)], &[]).len(), 1);
}

#[test]
fn an_application_has_no_row_and_may_use_what_all_may() {
    let app = |section: &str, package: &str| {
        let manifest = format!("[{section}]\n{package} = {{ workspace = true }}\n");
        found(&[], &[], &[("apps/pi/Cargo.toml", &manifest)])
    };
    for package in ["isles", "isles-app", "isles-graph", "isles-netcdf", "clap"] {
        assert_eq!(app("dependencies", package), Vec::<String>::new());
    }
    assert_eq!(app("dev-dependencies", "proptest"), Vec::<String>::new());
    for package in ["isles-runtime", "isles-bc", "tokio"] {
        assert_eq!(app("dependencies", package).len(), 1, "{package}");
    }
}

#[test]
fn http_outside_the_dashboard_is_refused() {
    for (package, name, findings) in [
        ("hyper", "runtime", 1),
        ("hyper", "dashboard", 0),
        ("tokio", "bench", 0),
        ("tokio", "cli", 1),
        ("mpi", "isles", 1),
    ] {
        let found = found(&[(name, "-", "-")], &[(name, "dependencies", &[package])], &[]);
        assert_eq!(found.len(), findings, "{package} in {name}");
    }
}

#[test]
fn a_clock_or_a_thread_in_the_protocol_is_refused() {
    for text in [
        "use std::time::Instant;",
        "fn a() { std::thread::yield_now() }",
        "use std::{fmt, net};",
        "use std::{\n fs::File,\n fmt};",
        "fn a(now: SystemTime) {}",
        "use std::{process};",
    ] {
        assert_eq!(protocol(text).len(), 1, "{text}");
    }
}

#[test]
fn a_pure_protocol_passes_and_its_tests_are_free() {
    for text in [
        "use std::time::Duration; use std::{fmt, collections::BTreeMap};",
        "mod thread; fn net(fs: u8) { thread::a(); self.process }",
        "// std::thread::spawn\nconst A: &str = \"std::net\";",
        "#[cfg(test)]\nmod tests { use std::thread; }",
    ] {
        assert_eq!(protocol(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_transport_that_does_not_join_the_conformance_suite_is_refused() {
    let rows = [("transport-shm", "-", "-")];
    let edges: [(&str, &str, &[&str]); 1] = [("transport-shm", "dependencies", &[])];
    let test = |text| [("crates/transport-shm/tests/all.rs", text)];
    assert_eq!(found(&rows, &edges, &test("// conformance")).len(), 1);
    assert!(found(&rows, &edges, &test("isles_transport::conformance!(Shm);")).is_empty());
}
