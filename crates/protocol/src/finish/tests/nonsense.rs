//! Peers that send anything at all: no panic, no early release, and the place goes on working.

use super::super::*;
use crate::PlaceId;
use proptest::prelude::*;

const PLACES: u32 = 4;

fn place() -> impl Strategy<Value = PlaceId> {
    prop_oneof![8 => 0..PLACES, 1 => Just(u32::MAX), 1 => any::<u32>()].prop_map(PlaceId)
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..3_u64, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn finish() -> impl Strategy<Value = FinishId> {
    (place(), count(), prop_oneof![0..3_u32, any::<u32>()]).prop_map(|(home, serial, slot)| FinishId {
        home,
        serial,
        slot,
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        place().prop_map(|place| Fault::DeadPlace { place }),
        place().prop_map(|place| Fault::Failed { place, payload: Payload::default() }),
    ]
}

fn report() -> impl Strategy<Value = FinishReport> {
    let entry =
        (place(), count(), count()).prop_map(|(place, sent, received)| Entry { place, sent, received });
    let entries = proptest::collection::vec(entry, 0..4);
    (finish(), 0..3_u32, entries, proptest::option::of(fault()), count(), any::<bool>()).prop_map(
        |(finish, answers, entries, fault, faults_lost, more)| FinishReport {
            finish,
            answers,
            entries,
            fault,
            faults_lost,
            more,
        },
    )
}

#[derive(Clone, Debug)]
enum Message {
    Control(Control),
    Task(FinishId),
    Visit(FinishId),
}

fn message() -> impl Strategy<Value = (PlaceId, Message)> {
    let control =
        prop_oneof![
            report().prop_map(Control::Report),
            (finish(), count(), proptest::option::of(place()))
                .prop_map(|(finish, missing, dead)| Control::Ask { finish, missing, dead }),
            finish().prop_map(|finish| Control::Cancel { finish, reason: Reason::Requested("x".into()) }),
            proptest::collection::vec(count(), 0..4).prop_map(|serials| Control::Forget { serials }),
        ];
    let message = prop_oneof![
        4 => control.prop_map(Message::Control),
        1 => finish().prop_map(Message::Task),
        1 => finish().prop_map(Message::Visit),
    ];
    (place(), message)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nonsense_from_peers_neither_panics_nor_ends_a_live_finish(
        messages in proptest::collection::vec(message(), 0..40)
    ) {
        let mut place = Finishes::new(PlaceId(0), PLACES);
        let key = place.open();
        let _ = place.depart(key, PlaceId(1));
        let mut out = Vec::new();
        let mut live = Vec::new();
        for (from, message) in messages {
            match message {
                Message::Control(control) => _ = place.receive(from, control, &mut out),
                Message::Task(id) => live.extend(place.arrive(id, from)),
                Message::Visit(id) => live.extend(place.visit(id, from)),
            }
        }
        let released = |output: &Output| matches!(output, Output::Released { key: over, .. } if *over == key);
        prop_assert!(!out.iter().any(released), "the body is still live");
        live.into_iter().for_each(|key| place.end(key, None, &mut out));
        prop_assert!(!out.iter().any(released), "the body is still live");
        let _ = place.waiting_for(key).to_string();
        let local = place.open();
        out.clear();
        place.end(local, None, &mut out);
        let ended = matches!(out[..], [Output::Released { .. }]);
        prop_assert!(ended, "a local finish ends");
    }
}

#[test]
fn a_report_about_an_unknown_finish_is_answered_by_forget() {
    let mut place = Finishes::new(PlaceId(0), 2);
    let finish = FinishId { home: PlaceId(0), serial: 7, slot: 0 };
    let report =
        FinishReport { finish, answers: 0, entries: vec![], fault: None, faults_lost: 0, more: false };
    let mut out = Vec::new();
    place.receive(PlaceId(1), Control::Report(report), &mut out).unwrap();
    assert_eq!(out, [Output::Send { to: PlaceId(1), control: Control::Forget { serials: vec![7] } }]);
}

#[test]
fn what_a_dead_place_still_says_is_refused() {
    let mut place = Finishes::new(PlaceId(0), 3);
    let key = place.open();
    let id = place.id(key);
    let mut out = Vec::new();
    place.place_died(PlaceId(1), &mut out);
    assert_eq!(place.arrive(id, PlaceId(1)), Err(TaskRefusal::DeadPlace(PlaceId(1))));
    assert_eq!(place.arrive(id, PlaceId(9)), Err(TaskRefusal::UnknownPlace(PlaceId(9))));
    let foreign = FinishId { home: PlaceId(1), serial: 0, slot: 0 };
    assert_eq!(place.arrive(foreign, PlaceId(2)), Err(TaskRefusal::DeadPlace(PlaceId(1))));
    let unknown = FinishId { home: PlaceId(0), serial: 99, slot: 0 };
    assert_eq!(place.visit(unknown, PlaceId(2)), Err(TaskRefusal::UnknownFinish));
}
