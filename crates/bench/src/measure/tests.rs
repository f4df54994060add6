//! Verdicts of rows with made-up figures.

use super::*;

const fn figure(contender: &'static str) -> Figure {
    Figure { contender, name: "time_us" }
}

const ROW: Row = Row {
    name: "row",
    question: "?",
    unit: "us",
    better: Better::Less,
    ours: figure("isles"),
    peers: &[figure("A"), figure("B")],
    beside: &[figure("bound")],
    targets: &[],
    quoted_with: None,
};

fn figures(values: &[(&'static str, &[f64])]) -> Figures {
    values
        .iter()
        .map(|(label, values)| ((*label, "time_us".to_owned()), Samples::new(values.to_vec()).unwrap()))
        .collect()
}

fn judged(row: &Row, target: &Target, values: &[(&'static str, &[f64])]) -> (Judgement, f64, String) {
    let verdict = row.verdict(target, &figures(values));
    (verdict.judgement, verdict.reached.map_or(f64::NAN, |reached| reached.median()), verdict.remark)
}

#[test]
fn the_best_peer_of_the_run_decides_and_is_named() {
    let target = Target::BestPeer(0.6);
    let outcome = judged(&ROW, &target, &[("isles", &[5.0]), ("A", &[10.0]), ("B", &[20.0])]);
    assert_eq!(outcome, (Judgement::Met, 0.5, "A".to_owned()));
    let outcome = judged(&ROW, &target, &[("isles", &[7.0]), ("A", &[20.0]), ("B", &[10.0])]);
    assert_eq!(outcome, (Judgement::Missed, 0.7, "B".to_owned()));
}

#[test]
fn where_more_is_better_the_best_peer_is_the_largest_one() {
    let row = Row { better: Better::More, ..ROW };
    let target = Target::BestPeer(1.3);
    let outcome = judged(&row, &target, &[("isles", &[13.0]), ("A", &[5.0]), ("B", &[10.0])]);
    assert_eq!(outcome, (Judgement::Met, 1.3, "B".to_owned()));
    assert_eq!(
        judged(&row, &target, &[("isles", &[12.0]), ("A", &[5.0]), ("B", &[10.0])]).0,
        Judgement::Missed
    );
}

#[test]
fn a_target_is_not_judged_while_a_peer_that_it_names_is_absent() {
    let why = |values: &[(&'static str, &[f64])]| {
        let verdict = ROW.verdict(&Target::BestPeer(1.0), &figures(values));
        assert_eq!((verdict.judgement, verdict.reached), (Judgement::NotJudged, None));
        verdict.remark
    };
    assert_eq!(why(&[("isles", &[5.0]), ("B", &[10.0])]), "A is not here");
    assert_eq!(why(&[("isles", &[5.0])]), "A and B are not here");
    assert_eq!(why(&[("A", &[5.0]), ("B", &[5.0])]), "isles is not here");
}

#[test]
fn what_stands_beside_and_peers_outside_the_target_do_not_decide() {
    let all: &[(&'static str, &[f64])] =
        &[("isles", &[5.0]), ("A", &[4.0]), ("B", &[10.0]), ("bound", &[1.0])];
    assert_eq!(judged(&ROW, &Target::BestPeer(1.0), all), (Judgement::Missed, 1.25, "A".to_owned()));
    let of_b = Target::BestOf { limit: 1.0, of: &["B"], words: "B's" };
    assert_eq!(judged(&ROW, &of_b, all), (Judgement::Met, 0.5, "B".to_owned()));
}

#[test]
fn a_spread_that_crosses_the_limit_is_borderline() {
    let at_most_four = |values: &[f64]| judged(&ROW, &Target::Value(4.0), &[("isles", values)]).0;
    assert_eq!(at_most_four(&[3.0, 3.5, 4.0]), Judgement::Met);
    assert_eq!(at_most_four(&[3.0, 3.5, 4.1]), Judgement::MetBorderline);
    assert_eq!(at_most_four(&[3.0, 4.1, 4.1]), Judgement::MissedBorderline);
    assert_eq!(at_most_four(&[4.1, 4.2, 4.3]), Judgement::Missed);
}

#[test]
fn a_speedup_is_their_time_over_ours() {
    let target = Target::Speedup { limit: 1.85, over: "bound" };
    assert_eq!(
        judged(&ROW, &target, &[("isles", &[5.0]), ("bound", &[9.5])]),
        (Judgement::Met, 1.9, "bound".to_owned())
    );
    assert_eq!(judged(&ROW, &target, &[("isles", &[5.0]), ("bound", &[9.0])]).0, Judgement::Missed);
}
