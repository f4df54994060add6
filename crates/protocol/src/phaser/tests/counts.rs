//! Exact numbers of messages, and each misuse with its error.

use super::super::*;
use crate::PlaceId;

/// Delivers control messages at once, and counts them; collects the woken tasks.
struct Net {
    places: Vec<Phasers>,
    messages: u64,
    woken: Vec<(u32, Party, Advanced)>,
}

impl Net {
    fn new(places: u32) -> Net {
        let places = (0..places).map(|place| Phasers::new(PlaceId(place), places)).collect();
        Net { places, messages: 0, woken: Vec::new() }
    }

    fn at(&mut self, place: u32) -> &mut Phasers {
        &mut self.places[place as usize]
    }

    fn send(&mut self, party: Party, from: u32, to: u32) -> Party {
        let ticket = self.at(from).depart(party, PlaceId(to)).unwrap();
        let mut out = Vec::new();
        let party = self.at(to).arrive(ticket, PlaceId(from), &mut out).unwrap();
        self.carry_out(to, out);
        party
    }

    fn advance(&mut self, place: u32, party: Party) -> Option<Advanced> {
        let mut out = Vec::new();
        let advanced = self.at(place).advance(party, &mut out).unwrap();
        self.carry_out(place, out);
        advanced
    }

    fn leave(&mut self, place: u32, party: Party) {
        let mut out = Vec::new();
        self.at(place).leave(party, &mut out).unwrap();
        self.carry_out(place, out);
    }

    fn carry_out(&mut self, place: u32, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send { to, control } => {
                    self.messages += 1;
                    let mut more = Vec::new();
                    self.at(to.0).receive(PlaceId(place), control, &mut more).unwrap();
                    self.carry_out(to.0, more);
                }
                Output::Wake { party, advanced } => self.woken.push((place, party, advanced)),
            }
        }
    }
}

#[test]
fn a_phaser_of_one_place_sends_nothing() {
    let mut net = Net::new(4);
    let first = net.at(0).open();
    let second = net.at(0).register(first).unwrap();
    for phase in 1..=100 {
        assert_eq!(net.advance(0, first), None);
        assert_eq!(net.advance(0, second), None);
        let advanced = Advanced { phase, dead: None };
        assert_eq!(net.woken, [(0, first, advanced), (0, second, advanced)]);
        net.woken.clear();
    }
    net.leave(0, first);
    net.leave(0, second);
    assert_eq!((net.messages, net.at(0).held()), (0, 0));
}

#[test]
fn a_phase_costs_two_messages_a_place_whatever_its_parties() {
    let mut net = Net::new(10);
    let root = net.at(0).open();
    let mut parties = vec![(0, root)];
    for place in (1..10).flat_map(|place| [place; 7]) {
        let party = net.send(root, 0, place);
        parties.push((place, party));
    }
    for phase in 1..=5 {
        for &(place, party) in &parties {
            assert_eq!(net.advance(place, party), None);
        }
        assert_eq!(net.messages, 18 * phase);
        assert_eq!(net.woken.len(), parties.len());
        net.woken.clear();
    }
    parties.into_iter().for_each(|(place, party)| net.leave(place, party));
    assert_eq!(net.messages, 18 * 5 + 9);
    assert!(net.places.iter().all(|place| place.held() == 0));
}

#[test]
fn a_resumed_party_finds_the_next_phase_begun() {
    let mut net = Net::new(2);
    let root = net.at(0).open();
    let other = net.send(root, 0, 1);
    let mut out = Vec::new();
    net.at(0).resume(root, &mut out).unwrap();
    net.at(0).resume(root, &mut out).unwrap();
    net.carry_out(0, out);
    net.advance(1, other);
    assert_eq!(net.at(1).phase(other), Ok(1));
    assert_eq!(net.at(0).phase(root), Ok(0));
    assert_eq!(net.advance(0, root), Some(Advanced { phase: 1, dead: None }));
    assert_eq!(net.at(0).waiting_for(root), Ok(vec![PlaceId(0), PlaceId(1)]));
}

#[test]
fn each_misuse_has_its_error() {
    let mut net = Net::new(3);
    let root = net.at(0).open();
    let second = net.at(0).register(root).unwrap();
    let mut out = Vec::new();
    net.at(0).resume(root, &mut out).unwrap();
    assert_eq!(net.at(0).register(root), Err(PhaserError::Resumed));
    assert_eq!(net.at(0).depart(root, PlaceId(1)), Err(PhaserError::Resumed));
    assert_eq!(net.at(0).advance(root, &mut out), Ok(None));
    assert_eq!(net.at(0).register(root), Err(PhaserError::Waiting));
    assert_eq!(net.at(0).resume(root, &mut out), Err(PhaserError::Waiting));
    assert_eq!(net.at(0).advance(root, &mut out), Err(PhaserError::Waiting));
    assert_eq!(net.at(0).depart(second, PlaceId(7)), Err(PhaserError::UnknownPlace(PlaceId(7))));
    net.at(0).leave(root, &mut out).unwrap();
    assert_eq!(net.at(0).leave(root, &mut out), Err(PhaserError::NotRegistered));
    assert_eq!(net.at(0).phase(root), Err(PhaserError::NotRegistered));
    let third = net.at(0).register(second).unwrap();
    assert_eq!(third.record, root.record);
    assert_eq!(net.at(0).resume(root, &mut out), Err(PhaserError::NotRegistered));
    assert_eq!(out, []);
}

#[test]
fn a_dead_place_is_named_once_to_each_who_waits() {
    let mut net = Net::new(3);
    let root = net.at(0).open();
    let _lost = net.send(root, 0, 1);
    let other = net.send(root, 0, 2);
    net.advance(0, root);
    net.advance(2, other);
    let mut out = Vec::new();
    net.at(0).place_died(PlaceId(1), &mut out);
    net.carry_out(0, out);
    let advanced = Advanced { phase: 1, dead: Some(PlaceId(1)) };
    assert_eq!(net.woken, [(2, other, advanced), (0, root, advanced)]);
    net.woken.clear();
    net.advance(2, other);
    net.advance(0, root);
    assert_eq!(net.woken.last(), Some(&(0, root, Advanced { phase: 2, dead: None })));
}

#[test]
fn a_dead_home_is_an_error_from_then_on() {
    let mut net = Net::new(2);
    let root = net.at(0).open();
    let waiting = net.send(root, 0, 1);
    let active = net.send(root, 0, 1);
    net.advance(1, waiting);
    let mut out = Vec::new();
    net.at(1).place_died(PlaceId(0), &mut out);
    net.carry_out(1, out);
    assert_eq!(net.woken, [(1, waiting, Advanced { phase: 0, dead: Some(PlaceId(0)) })]);
    let mut out = Vec::new();
    assert_eq!(net.at(1).advance(active, &mut out), Err(PhaserError::DeadPlace(PlaceId(0))));
    assert_eq!(net.at(1).register(waiting), Err(PhaserError::DeadPlace(PlaceId(0))));
    net.leave(1, waiting);
    net.leave(1, active);
    assert_eq!(net.at(1).held(), 0);
}

#[test]
fn a_long_report_travels_in_parts() {
    let mut net = Net::new(70);
    let root = net.at(0).open();
    let first = net.send(root, 0, 1);
    let others: Vec<_> = (2..70).map(|place| (place, net.send(first, 1, place))).collect();
    net.leave(1, first);
    assert_eq!(net.messages, 69_u64.div_ceil(REPORT_ENTRIES_MAX as u64));
    others.into_iter().for_each(|(place, party)| net.leave(place, party));
    net.leave(0, root);
    assert!(net.places.iter().all(|place| place.held() == 0));
}

#[test]
fn nonsense_from_peers_is_a_violation() {
    let mut net = Net::new(3);
    let root = net.at(0).open();
    let other = net.send(root, 0, 1);
    let phaser = net.places[0].shares[0].id;
    let entry = |place| Entry { place: PlaceId(place), sent: u64::MAX, received: u64::MAX };
    let report = |phase, answers, entries| {
        Control::Report(PhaserReport { phaser, phase, parties: u64::MAX, answers, entries, more: false })
    };
    let mut out = Vec::new();
    let false_report = Err(Violation::FalseReport(phaser));
    assert_eq!(net.at(0).receive(PlaceId(1), report(1, 0, vec![]), &mut out), false_report);
    assert_eq!(net.at(0).receive(PlaceId(1), report(0, 1, vec![]), &mut out), false_report);
    assert_eq!(net.at(0).receive(PlaceId(1), report(0, 0, vec![entry(1)]), &mut out), false_report);
    let unknown = Err(Violation::UnknownPlace(PlaceId(9)));
    assert_eq!(net.at(0).receive(PlaceId(1), report(0, 0, vec![entry(9)]), &mut out), unknown);
    let advance = |phase| Control::Advance { phaser, phase, dead: None };
    let false_advance = Err(Violation::FalseAdvance(phaser));
    assert_eq!(net.at(1).receive(PlaceId(0), advance(1), &mut out), false_advance);
    assert_eq!(net.at(1).receive(PlaceId(0), advance(u64::MAX), &mut out), false_advance);
    assert_eq!(net.at(1).receive(PlaceId(2), advance(1), &mut out), Err(Violation::NotItsHome(phaser)));
    let ticket = RegistrationTransfer { phaser, phase: 5, dead: None };
    let wrong = PhaserError::WrongPhase { ticket: 5, here: 0 };
    assert_eq!(net.at(1).arrive(ticket, PlaceId(2), &mut out), Err(wrong));
    let nobody = RegistrationTransfer { phaser: PhaserId { serial: 9, ..phaser }, phase: 0, dead: None };
    assert_eq!(
        net.at(0).arrive(nobody, PlaceId(1), &mut out),
        Err(PhaserError::UnknownPhaser(nobody.phaser))
    );
    assert_eq!(out, []);
    net.leave(1, other);
    net.leave(0, root);
}

#[test]
fn the_largest_message_is_small() {
    let phaser = PhaserId { home: PlaceId(u32::MAX), serial: u64::MAX, slot: u32::MAX };
    let entry = Entry { place: PlaceId(u32::MAX), sent: u64::MAX, received: u64::MAX };
    let entries = vec![entry; REPORT_ENTRIES_MAX];
    let report =
        PhaserReport { phaser, phase: u64::MAX, parties: u64::MAX, answers: u32::MAX, entries, more: true };
    let bytes = postcard::to_allocvec(&Control::Report(report)).unwrap();
    assert!(bytes.len() <= crate::finish::CONTROL_BYTES_MAX, "{} bytes", bytes.len());
}
