//! Exact numbers of control messages, the cases that docs/design/finish.md promises.

use super::super::limits::PROMPT_QUESTIONS;
use super::super::*;
use crate::PlaceId;

/// Places that deliver control messages at once and in order, and count them.
struct Net {
    places: Vec<Finishes>,
    reports: u64,
    asks: u64,
    cancels: u64,
    forgets: u64,
    released: Vec<Outcome>,
}

impl Net {
    fn new(places: u32) -> Net {
        let places = (0..places).map(|place| Finishes::new(PlaceId(place), places)).collect();
        Net { places, reports: 0, asks: 0, cancels: 0, forgets: 0, released: Vec::new() }
    }

    fn at(&mut self, place: u32) -> &mut Finishes {
        &mut self.places[place as usize]
    }

    /// Sends a task, which runs and ends at once.
    fn send_and_end(&mut self, key: Key, from: u32, to: u32) {
        let arrived = self.send(key, from, to);
        self.end(to, arrived);
    }

    fn send(&mut self, key: Key, from: u32, to: u32) -> Key {
        let id = self.at(from).depart(key, PlaceId(to)).unwrap();
        self.at(to).arrive(id, PlaceId(from)).unwrap()
    }

    fn end(&mut self, place: u32, key: Key) {
        self.end_with(place, key, None);
    }

    fn end_with(&mut self, place: u32, key: Key, fault: Option<Fault>) {
        let mut out = Vec::new();
        self.at(place).end(key, fault, &mut out);
        self.carry_out(place, out);
    }

    fn carry_out(&mut self, place: u32, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send { to, control } => {
                    match control {
                        Control::Report(_) => self.reports += 1,
                        Control::Ask { .. } => self.asks += 1,
                        Control::Cancel { .. } => self.cancels += 1,
                        Control::Forget { .. } => self.forgets += 1,
                    }
                    let mut more = Vec::new();
                    self.at(to.0).receive(PlaceId(place), control, &mut more).unwrap();
                    self.carry_out(to.0, more);
                }
                Output::Released { outcome, .. } => self.released.push(outcome),
                Output::Cancelled { .. } => {}
            }
        }
    }

    #[track_caller]
    fn expect(&self, reports: u64, asks: u64, forgets: u64, kind: FinishKind) {
        assert_eq!((self.reports, self.asks, self.forgets), (reports, asks, forgets));
        assert_eq!(self.released.last().map(|outcome| outcome.kind), Some(kind));
        assert!(self.released.iter().all(Outcome::is_clean));
    }
}

#[test]
fn a_local_finish_sends_nothing() {
    let mut net = Net::new(4);
    let key = net.at(0).open();
    for _ in 0..1000 {
        net.at(0).begin(key);
    }
    for _ in 0..1001 {
        assert!(net.released.is_empty());
        net.end(0, key);
    }
    net.expect(0, 0, 0, FinishKind::Local);
    assert_eq!(net.at(0).held(), 0);
}

#[test]
fn one_remote_task_costs_one_report() {
    let mut net = Net::new(4);
    let key = net.at(0).open();
    let task = net.send(key, 0, 3);
    net.end(0, key);
    net.end(3, task);
    net.expect(1, 0, 0, FinishKind::Single);
}

#[test]
fn one_remote_task_that_ends_before_the_body_costs_one_report() {
    let mut net = Net::new(4);
    let key = net.at(0).open();
    net.send_and_end(key, 0, 3);
    net.end(0, key);
    net.expect(1, 0, 0, FinishKind::Single);
}

#[test]
fn one_task_at_each_place_costs_one_report_a_place() {
    let mut net = Net::new(200);
    let key = net.at(0).open();
    let tasks: Vec<_> = (1..200).map(|place| (place, net.send(key, 0, place))).collect();
    net.end(0, key);
    for (place, task) in tasks {
        net.end(place, task);
    }
    net.expect(199, 0, 0, FinishKind::Spmd);
}

#[test]
fn a_place_that_is_quiet_once_reports_once_whatever_it_sent() {
    let mut net = Net::new(16);
    let key = net.at(0).open();
    let first: Vec<_> = (1..16).map(|place| (place, net.send(key, 0, place))).collect();
    let mut second = Vec::new();
    for &(place, task) in &first {
        second.extend((1..16).filter(|&to| to != place).map(|to| (to, net.send(task, place, to))));
    }
    net.end(0, key);
    for (place, task) in first.into_iter().chain(second) {
        net.end(place, task);
    }
    net.expect(15, 0, 0, FinishKind::General);
}

#[test]
fn a_million_tasks_to_one_place_cost_one_question() {
    let mut net = Net::new(2);
    let key = net.at(0).open();
    for _ in 0..1_000_000 {
        net.send_and_end(key, 0, 1);
    }
    net.end(0, key);
    net.expect(2, 1, 0, FinishKind::Spmd);
}

#[test]
fn a_task_that_hops_on_and_on_is_asked_after_a_few_times_and_then_when_the_home_rests() {
    let mut net = Net::new(3);
    let key = net.at(0).open();
    let mut task = net.send(key, 0, 1);
    net.end(0, key);
    let mut here = 1;
    for _ in 0..1000 {
        let there = 3 - here;
        let next = net.send(task, here, there);
        net.end(here, task);
        (here, task) = (there, next);
    }
    let prompt = u64::from(PROMPT_QUESTIONS);
    // Each place has reported once by itself.
    assert_eq!((net.asks, net.reports), (prompt, prompt + 2));
    net.end(here, task);
    assert!(net.released.is_empty() && net.at(0).holds_back());
    while net.at(0).holds_back() {
        let mut out = Vec::new();
        net.at(0).ask_deferred(&mut out);
        net.carry_out(0, out);
    }
    assert_eq!(net.asks, prompt + 2);
    assert_eq!(net.released.len(), 1);
}

#[test]
fn a_request_without_tasks_costs_nothing() {
    let mut net = Net::new(2);
    let key = net.at(0).open();
    let _name = net.at(0).request(key, PlaceId(1)).unwrap();
    let mut out = Vec::new();
    net.at(0).settle(key, PlaceId(1), false, &mut out);
    net.end(0, key);
    net.expect(0, 0, 0, FinishKind::Local);
    assert_eq!(net.at(1).held(), 0);
}

#[test]
fn a_visit_that_starts_nothing_leaves_no_trace() {
    let mut net = Net::new(2);
    let key = net.at(0).open();
    let id = net.at(0).request(key, PlaceId(1)).unwrap();
    let visit = net.at(1).visit(id, PlaceId(0)).unwrap();
    net.end(1, visit);
    assert_eq!(net.at(1).held(), 0);
    let mut out = Vec::new();
    net.at(0).settle(key, PlaceId(1), false, &mut out);
    net.end(0, key);
    net.expect(0, 0, 0, FinishKind::Local);
}

#[test]
fn a_request_whose_body_starts_tasks_costs_one_report() {
    let mut net = Net::new(2);
    let key = net.at(0).open();
    let id = net.at(0).request(key, PlaceId(1)).unwrap();
    let visit = net.at(1).visit(id, PlaceId(0)).unwrap();
    net.at(1).count_visit(visit, PlaceId(0));
    net.at(1).begin(visit);
    net.end(1, visit);
    let mut out = Vec::new();
    net.at(0).settle(key, PlaceId(1), true, &mut out);
    net.end(0, key);
    assert!(net.released.is_empty());
    net.end(1, visit);
    net.expect(1, 0, 0, FinishKind::Single);
}

#[test]
fn millions_of_finishes_leave_a_bounded_rest_and_few_messages() {
    let mut net = Net::new(3);
    let rounds = 100_000;
    for _ in 0..rounds {
        let key = net.at(0).open();
        net.send_and_end(key, 0, 1);
        net.send_and_end(key, 0, 2);
        net.end(0, key);
    }
    net.expect(2 * rounds, 0, 2 * rounds / FORGET_BATCH as u64, FinishKind::Spmd);
    assert_eq!(net.at(0).held(), 0);
    assert!(net.at(1).held() < FORGET_BATCH && net.at(2).held() < FORGET_BATCH);
    assert!(net.at(1).slots.len() <= FORGET_BATCH);
}

#[test]
fn a_long_report_travels_in_parts_and_releases_once() {
    let mut net = Net::new(100);
    let key = net.at(0).open();
    let first = net.send(key, 0, 1);
    let second: Vec<_> = (2..100).map(|place| (place, net.send(first, 1, place))).collect();
    net.end(0, key);
    for (place, task) in second {
        net.end(place, task);
    }
    assert!(net.released.is_empty());
    net.end(1, first);
    let parts = 99_u64.div_ceil(REPORT_ENTRIES_MAX as u64);
    net.expect(98 + parts, 0, 0, FinishKind::General);
}

#[test]
fn faults_are_kept_up_to_a_bound_and_then_counted() {
    let mut net = Net::new(3);
    let key = net.at(0).open();
    let fault = |place: u32| Some(Fault::Failed { place: PlaceId(place), payload: Payload::default() });
    for place in [1, 2] {
        let tasks: Vec<_> = (0..FAULTS_MAX + 3).map(|_| net.send(key, 0, place)).collect();
        tasks.into_iter().for_each(|task| net.end_with(place, task, fault(place)));
    }
    net.end_with(0, key, fault(0));
    let outcome = net.released.pop().unwrap();
    assert_eq!(outcome.faults.len(), FAULTS_MAX);
    assert_eq!(outcome.faults_lost, (FAULTS_MAX + 3) as u64 * 2 + 1 - FAULTS_MAX as u64);
}

#[test]
fn cancellation_costs_one_message_a_reached_place() {
    let mut net = Net::new(5);
    let key = net.at(0).open();
    let tasks: Vec<_> = (1..4).map(|place| (place, net.send(key, 0, place))).collect();
    let mut out = Vec::new();
    net.at(2).cancel(tasks[1].1, Reason::Requested("enough".into()), &mut out);
    net.carry_out(2, out);
    assert_eq!(net.cancels, 1 + 2);
    for (place, task) in tasks {
        assert!(net.at(place).is_cancelled(task));
        assert_eq!(net.at(place).depart(task, PlaceId(4)), Err(TaskRefusal::Cancelled));
        net.end(place, task);
    }
    net.end(0, key);
    assert_eq!(net.released[0].cancelled, Some(Reason::Requested("enough".into())));
    assert_eq!((net.reports, net.asks, net.cancels), (3, 0, 3));
}

#[test]
fn a_death_costs_one_question_and_answer_a_live_place() {
    let mut net = Net::new(6);
    let key = net.at(0).open();
    let lost = net.send(key, 0, 1);
    let orphan = net.send(lost, 1, 2);
    net.end(0, key);
    let mut out = Vec::new();
    net.at(0).place_died(PlaceId(1), &mut out);
    net.carry_out(0, out);
    assert_eq!((net.asks, net.reports), (4, 3));
    assert!(net.released.is_empty());
    net.end(2, orphan);
    assert_eq!((net.asks, net.reports), (4, 4));
    assert_eq!(net.released[0].faults, vec![Fault::DeadPlace { place: PlaceId(1) }]);
}

#[test]
fn a_death_leaves_a_local_finish_alone() {
    let mut net = Net::new(3);
    let key = net.at(0).open();
    let mut out = Vec::new();
    net.at(0).place_died(PlaceId(1), &mut out);
    assert_eq!(out, []);
    assert_eq!(net.at(0).depart(key, PlaceId(1)), Err(TaskRefusal::DeadPlace(PlaceId(1))));
    net.end(0, key);
    net.expect(0, 0, 0, FinishKind::Local);
}

#[test]
fn a_finish_says_whom_it_waits_for() {
    let mut net = Net::new(4);
    let key = net.at(0).open();
    net.send_and_end(key, 0, 1);
    let busy = net.send(key, 0, 1);
    let _other = net.send(key, 0, 3);
    net.end(0, key);
    let text = net.at(0).waiting_for(key).to_string();
    assert_eq!(
        text,
        "finish 0 of place 0: 0 live at place 0, 1 at place 1 (1 reports heard, asked), 1 at place 3 (0 reports heard)"
    );
    net.end(1, busy);
    let waiting = net.at(0).waiting_for(key).waiting;
    assert_eq!(waiting, [Waiting { place: PlaceId(3), tasks: 1, reports: 0, asked: false }]);
}

#[test]
fn the_largest_message_fits_its_bound() {
    let finish = FinishId { home: PlaceId(u32::MAX), serial: u64::MAX, slot: u32::MAX };
    let entry = Entry { place: PlaceId(u32::MAX), sent: u64::MAX, received: u64::MAX };
    let text = Text::from("x".repeat(2 * TEXT_BYTES_MAX));
    let payload = Payload::try_from(vec![0xff; PAYLOAD_BYTES_MAX]).unwrap();
    let report = Control::Report(FinishReport {
        finish,
        answers: u32::MAX,
        entries: vec![entry; REPORT_ENTRIES_MAX],
        fault: Some(Fault::Failed { place: PlaceId(u32::MAX), payload }),
        faults_lost: u64::MAX,
        more: true,
    });
    let forget = Control::Forget { serials: vec![u64::MAX; FORGET_BATCH] };
    let ask = Control::Ask { finish, missing: u64::MAX, dead: Some(PlaceId(u32::MAX)) };
    let cancel = Control::Cancel { finish, reason: Reason::Requested(text) };
    for control in [report, forget, ask, cancel] {
        let bytes = postcard::to_allocvec(&control).unwrap();
        assert!(bytes.len() <= CONTROL_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(postcard::from_bytes::<Control>(&bytes), Ok(control));
    }
}

#[test]
fn a_text_is_cut_at_a_character_also_when_decoded() {
    let long = "é".repeat(TEXT_BYTES_MAX);
    let bytes = postcard::to_allocvec(&format!("x{long}")).unwrap();
    let text: Text = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(text.as_str().len(), TEXT_BYTES_MAX - 1);
    assert_eq!(text, Text::from(format!("x{long}")));
}

#[test]
fn a_payload_arrives_as_it_was_given_and_is_refused_if_it_is_too_long() {
    let bytes: Vec<u8> = (0..PAYLOAD_BYTES_MAX).map(|index| index as u8).collect();
    let payload = Payload::try_from(bytes.clone()).unwrap();
    let wire = postcard::to_allocvec(&payload).unwrap();
    assert_eq!(wire.len(), PAYLOAD_BYTES_MAX + 2, "a byte is a byte on the wire, behind the length");
    assert_eq!(postcard::from_bytes::<Payload>(&wire).unwrap().as_bytes(), bytes);
    let long = vec![0; PAYLOAD_BYTES_MAX + 1];
    assert_eq!(Payload::try_from(long.clone()), Err(PayloadTooLong { len: PAYLOAD_BYTES_MAX + 1 }));
    assert!(postcard::from_bytes::<Payload>(&postcard::to_allocvec(&long).unwrap()).is_err());
}

#[test]
fn the_travelling_name_survives_its_fixed_form() {
    let id = FinishId { home: PlaceId(0x0102_0304), serial: 0x0506_0708_090a_0b0c, slot: 0x0d0e_0f10 };
    assert_eq!(FinishId::from_bytes(id.to_bytes()), id);
}

#[test]
#[should_panic(expected = "is stale")]
fn a_stale_key_is_a_programming_error() {
    let mut net = Net::new(1);
    let key = net.at(0).open();
    net.end(0, key);
    net.at(0).open();
    net.at(0).begin(key);
}
