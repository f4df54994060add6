//! The table of public operations, each with the world that cancels it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A source file without its extension, the world that cancels its operations, and these operations.
type Row = (&'static str, &'static str, &'static [&'static str]);

/// Each public function that returns a future.
#[rustfmt::skip]
pub const OPERATIONS: &[Row] = &[
    ("isles/array/access", "arrays", &["get", "set", "get_many", "set_many"]),
    ("isles/array/checkpoint", "arrays", &["save", "load"]),
    ("isles/array/halo", "arrays", &["exchange", "exchange_while"]),
    ("isles/array/mod", "arrays", &["new", "with_halo", "in_window", "reduce"]),
    ("isles/array/moves", "arrays", &["copy_into", "redistribute", "gather", "transpose_into", "transpose_with"]),
    ("isles/array/open", "arrays", &["open", "put", "get", "fence", "close", "accumulate", "fetch_add"]),
    ("isles/glb/mod", "handles", &["run", "run_with"]),
    ("services/aggregation/aggregator", "aggregation", &["new", "with", "batched", "addressed", "push", "push_all"]),
    ("services/aggregation/gatherer", "aggregation", &["new", "gather", "gather_into"]),
    ("isles/pipeline/flow", "pipelines",
        &["send", "recv", "resize", "resize_to", "move_to", "measured_costs", "rebalance"]),
    ("isles/pipeline/mod", "pipelines", &["run", "process"]),
    ("services/hubs/task", "hubs", &["allocate", "yield_now", "request", "signal", "test", "put", "get"]),
    ("services/hubs/request", "hubs", &["begin"]),
    ("services/hubs/worker", "hubs", &["run", "run_here"]),
    ("runtime/call/mod", "handles", &["at_there"]),
    ("services/channel/mod", "channels",
        &["channel_at", "send", "try_send", "send_timeout", "recv", "try_recv", "recv_timeout", "next"]),
    ("runtime/finish/future", "handles", &["finish"]),
    ("runtime/handle/counter", "handles", &["take_below", "ask_below", "add", "get", "set"]),
    ("runtime/handle/place_local", "handles", &["new", "new_on", "with", "with_on", "reduce"]),
    ("runtime/join", "handles", &["everywhere"]),
    ("runtime/monitor", "handles", &["when"]),
    ("services/phaser/mod", "phasers", &["advance", "advance_all"]),
    ("services/shared/acquire", "shared", &["acquire_all"]),
    ("services/shared/guard", "shared", &["read", "write", "repair", "release"]),
    ("services/shared/mod", "shared", &["new", "with", "with_on"]),
    ("services/shared/space", "shared", &["new", "with", "read", "mapping", "extend"]),
    ("runtime/run/region", "handles", &["measured"]),
    ("runtime/task/coop", "handles", &["yield_now"]),
    ("services/team/barrier", "teams", &["barrier"]),
    ("services/team/mod", "teams", &["split"]),
    ("services/team/point_to_point/mod", "messages",
        &["send", "recv", "recv_any", "send_slice", "recv_slice", "recv_slice_any", "send_recv", "neighbor_exchange",
          "neighbor_exchange_slices", "exchange_slices"]),
    ("services/team/rows", "teams",
        &["gather_slice", "gather_slice_into", "gatherv", "scatter_slice", "scatter_slice_into", "scatterv",
          "all_gather_slice", "all_gather_slice_into", "all_gatherv", "all_to_all_slice", "all_to_all_slice_into",
          "all_to_allv", "all_to_allv_with"]),
    ("services/team/slices", "teams",
        &["broadcast_slice", "reduce_slice", "all_reduce_slice", "scan_slice", "exclusive_scan_slice"]),
    ("services/team/values", "teams",
        &["broadcast", "reduce", "all_reduce", "scan", "exclusive_scan", "gather", "all_gather", "scatter",
          "all_to_all"]),
    ("runtime/time", "handles", &["sleep", "timeout"]),
    ("services/window/access", "windows",
        &["put", "put_strided", "put_notify", "get", "get_strided", "accumulate", "fetch_add", "compare_exchange"]),
    ("services/window/mod", "windows", &["new", "new_on", "with_lens"]),
    ("services/window/sync", "windows",
        &["fence", "flush", "start", "complete", "wait", "lock", "lock_shared", "unlock", "notified"]),
];

/// Public functions that return a future but that no world cancels, with the reason.
#[rustfmt::skip]
const NOT_GIVEN_UP: &[Row] = &[
    ("runtime/call/mod", "the future of the program itself, or over at its first poll", &["at", "at_here"]),
    ("services/team/mod", "not of the façade: what collectives of arrays are made of", &["together"]),
    ("services/channel/select", "what `select!` stands for; its operations are those of channels", &["begin"]),
    ("services/shared/policy", "over at once elsewhere than on a chip; what a trial awaits is the program's", &["measured"]),
    ("runtime/join", "not of the façade: what `everywhere!` is made of", &["try_join_all"]),
    ("services/window/own", "not of the façade: what open arrays are made of",
        &["with_lens", "open", "close", "fence", "put", "get", "get_strided", "accumulate", "fetch_add"]),
    ("runtime/call/mod", "of the interface for services: given up with their operations", &["answer", "called_at"]),
    ("runtime/join", "of the interface for services: given up with their operations", &["try_join"]),
    ("runtime/part/replicate", "of the interface for services: given up with their operations", &["replicate", "fold"]),
    ("runtime/task/coop", "of the interface for services: given up with their operations", &["cooperate", "wait_until_sent"]),
    ("runtime/task/coop", "over at once on the loopback, where nothing is sent piece by piece", &["flush_sends"]),
    ("isles/hub/mod", "makes handles at all places, as those of other handles, which are given up", &["open"]),
    ("services/hubs/mod", "makes handles at all places, as those of other handles, which are given up", &["open"]),
    ("isles/svm", "not of the loopback; what it awaits are collectives of teams, which are given up",
        &["new", "barrier", "close"]),
    ("isles/svm", "not of the loopback; given up in the tests of the crate isles-svm", &["lock"]),
];

/// Functions that never wait on the loopback, so they cannot be cancelled while they wait.
pub const NEVER_WAIT: &[&str] = &["services/shared/guard release", "services/window/sync complete"];

/// Types of the interface that are futures.
const FUTURES: &[&str] = &[
    "Future<",
    "ReadFuture<",
    "WriteFuture<",
    "SendFuture<",
    "RecvFuture<",
    "Finish<",
    "Sleep",
    "HubRequest",
];

/// Returns the names of the functions of `rows`, as worlds record them.
fn names(rows: &[Row]) -> BTreeSet<String> {
    rows.iter().flat_map(|(file, _, names)| names.iter().map(move |name| format!("{file} {name}"))).collect()
}

/// Checks that `given_up` contains exactly the operations of `world`.
pub fn check_world(world: &str, given_up: &[String]) {
    let of_world: Vec<Row> = OPERATIONS.iter().copied().filter(|(_, of, _)| *of == world).collect();
    let (expected, given_up) = (names(&of_world), given_up.iter().cloned().collect::<BTreeSet<_>>());
    let missing: Vec<&String> =
        expected.difference(&given_up).filter(|name| !NEVER_WAIT.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "never given up while they waited: {missing:?}");
    let unknown: Vec<&String> = given_up.difference(&expected).collect();
    assert!(unknown.is_empty(), "given up in the world {world}, and not in its table: {unknown:?}");
}

/// Adds the public functions of the files below `folder` that return a future.
fn add_public(folder: &Path, prefix: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the sources are there").path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{prefix}/{stem}");
        if path.is_dir() {
            add_public(&path, &name, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && stem != "tests" {
            let text = fs::read_to_string(&path).expect("the sources are there");
            for function in futures_of(&text) {
                found.insert(format!("{name} {function}"), path.display().to_string());
            }
        }
    }
}

/// Returns the names of the public functions in a file that are `async` or return a future.
fn futures_of(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("pub ") {
        let rest = &text[start + 4..];
        let is_async = rest.starts_with("async fn ");
        let Some(rest) = rest.strip_prefix("async ").unwrap_or(rest).strip_prefix("fn ") else { continue };
        let signature = &rest[..rest.find('{').unwrap_or(rest.len())];
        let signature = signature.split("where").next().unwrap_or_default();
        let returned = signature.rsplit_once("-> ").map_or("", |(_, returned)| returned);
        let returned = returned.trim_start_matches("impl ");
        if is_async || FUTURES.iter().any(|future| returned.starts_with(future)) {
            found.push(&rest[..rest.find(['(', '<']).unwrap_or(0)]);
        }
    }
    found
}

/// Finds new asynchronous functions that no world cancels.
#[test]
fn every_public_future_has_a_world_that_gives_it_up() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("there are crates");
    let mut found = BTreeMap::new();
    for name in ["isles", "runtime", "services"] {
        add_public(&crates.join(name).join("src"), name, &mut found);
    }
    let listed: BTreeSet<String> = names(OPERATIONS).union(&names(NOT_GIVEN_UP)).cloned().collect();
    let missing: Vec<_> = found.iter().filter(|(name, _)| !listed.contains(*name)).collect();
    assert!(missing.is_empty(), "in no row of the table: {missing:#?}");
    let gone: Vec<_> = listed.iter().filter(|name| !found.contains_key(*name)).collect();
    assert!(gone.is_empty(), "in the table, and not in the sources: {gone:#?}");
}
