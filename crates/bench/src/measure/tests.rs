//! Verdicts of rows with made-up figures.

use super::*;

const ROW: Row = Row {
    name: "row",
    question: "?",
    unit: "us",
    better: Better::Less,
    ours: Figure { contender: "isles", name: "time_us" },
    peers: &[Figure { contender: "A", name: "time_us" }, Figure { contender: "B", name: "time_us" }],
    targets: &[],
};

fn figures(values: &[(&'static str, f64)]) -> Figures {
    values
        .iter()
        .map(|(label, value)| ((*label, "time_us".to_owned()), Samples::new(vec![*value]).unwrap()))
        .collect()
}

const OF_BOTH: Target = Target::Ratio { limit: 0.6, of: &["A", "B"], words: "the better of A and B" };

#[test]
fn a_ratio_is_with_the_better_peer() {
    let verdict = ROW.verdict(&OF_BOTH, &figures(&[("isles", 5.0), ("A", 10.0), ("B", 20.0)]));
    assert_eq!((verdict.reached, verdict.met, verdict.remark.as_str()), (Some(0.5), Some(true), "A"));
    let verdict = ROW.verdict(&OF_BOTH, &figures(&[("isles", 7.0), ("A", 20.0), ("B", 10.0)]));
    assert_eq!((verdict.reached, verdict.met, verdict.remark.as_str()), (Some(0.7), Some(false), "B"));
}

#[test]
fn where_more_is_better_the_better_peer_is_the_larger_one() {
    let row = Row { better: Better::More, ..ROW };
    let target = Target::Ratio { limit: 1.3, of: &["A", "B"], words: "the better of A and B" };
    let verdict = row.verdict(&target, &figures(&[("isles", 13.0), ("A", 5.0), ("B", 10.0)]));
    assert_eq!((verdict.reached, verdict.met, verdict.remark.as_str()), (Some(1.3), Some(true), "B"));
    let verdict = row.verdict(&target, &figures(&[("isles", 12.0), ("A", 5.0), ("B", 10.0)]));
    assert_eq!(verdict.met, Some(false));
}

#[test]
fn a_missing_figure_gives_no_verdict() {
    let verdict = ROW.verdict(&OF_BOTH, &figures(&[("isles", 5.0)]));
    assert_eq!((verdict.reached, verdict.met), (None, None));
    let verdict = ROW.verdict(&OF_BOTH, &figures(&[("A", 5.0)]));
    assert_eq!((verdict.reached, verdict.met), (None, None));
    let one_left = ROW.verdict(&OF_BOTH, &figures(&[("isles", 5.0), ("B", 10.0)]));
    assert_eq!((one_left.met, one_left.remark.as_str()), (Some(true), "B"));
}

#[test]
fn a_peer_outside_the_target_does_not_count() {
    let target = Target::Ratio { limit: 1.0, of: &["B"], words: "B" };
    let verdict = ROW.verdict(&target, &figures(&[("isles", 5.0), ("A", 1.0), ("B", 10.0)]));
    assert_eq!((verdict.reached, verdict.met), (Some(0.5), Some(true)));
}

#[test]
fn a_speedup_is_their_time_over_ours() {
    let target = Target::Speedup { limit: 1.85, over: "A" };
    let verdict = ROW.verdict(&target, &figures(&[("isles", 5.0), ("A", 9.5)]));
    assert_eq!((verdict.reached, verdict.met), (Some(1.9), Some(true)));
    let verdict = ROW.verdict(&target, &figures(&[("isles", 5.0), ("A", 9.0)]));
    assert_eq!((verdict.reached, verdict.met), (Some(1.8), Some(false)));
}
