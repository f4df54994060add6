//! The locks of a region: all orders of three places and two locks, with waits that are given up, and a death.

use super::super::{LockAction, LockMessage, LockNode, LockNumber};
use crate::PlaceId;
use crate::tests::{World, explore};
use std::collections::VecDeque;

const LOCKS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Waiting,
    Holding,
}

#[derive(Clone, Copy, Debug)]
enum WorldAction {
    Request { place: usize, lock: usize },
    GiveUp { place: usize, lock: usize },
    Release { place: usize, lock: usize },
    Deliver { from: usize, to: usize },
    Die { place: usize },
    HearOfDeath { place: usize },
}

#[derive(Clone, Hash)]
struct LockWorld {
    nodes: Vec<LockNode>,
    /// By receiver and sender.
    links: Vec<Vec<VecDeque<LockMessage>>>,
    /// By place and lock.
    steps: Vec<[Step; LOCKS]>,
    requests: usize,
    may_give_up: bool,
    may_die: bool,
    dead: Option<usize>,
    heard: Vec<bool>,
}

impl LockWorld {
    fn new(places: usize, requests: usize, may_give_up: bool, may_die: bool) -> LockWorld {
        LockWorld {
            nodes: (0..places as u32).map(|place| LockNode::new(PlaceId(place), places as u32)).collect(),
            links: vec![vec![VecDeque::new(); places]; places],
            steps: vec![[Step::Idle; LOCKS]; places],
            requests,
            may_give_up,
            may_die,
            dead: None,
            heard: vec![false; places],
        }
    }

    fn execute(&mut self, place: usize, actions: Vec<LockAction>) -> Result<(), String> {
        for action in actions {
            match action {
                LockAction::Send { to, message } if self.dead != Some(to.index()) => {
                    self.links[to.index()][place].push_back(message);
                }
                LockAction::Send { .. } => {}
                LockAction::Granted { lock } => self.granted(place, lock.0 as usize)?,
            }
        }
        Ok(())
    }

    fn granted(&mut self, place: usize, lock: usize) -> Result<(), String> {
        if self.steps[place][lock] != Step::Waiting {
            return Err(format!("no wait for a grant at place {place}"));
        }
        let holder = (0..self.steps.len()).find(|other| self.steps[*other][lock] == Step::Holding);
        if let Some(holder) = holder {
            return Err(format!("two holders: place {holder} and place {place}"));
        }
        self.steps[place][lock] = Step::Holding;
        Ok(())
    }

    fn actions_of(&self, place: usize, open: &mut Vec<WorldAction>) {
        for lock in 0..LOCKS {
            match self.steps[place][lock] {
                Step::Idle if self.requests > 0 && !self.heard[place] => {
                    open.push(WorldAction::Request { place, lock });
                }
                Step::Waiting if self.may_give_up => open.push(WorldAction::GiveUp { place, lock }),
                Step::Holding => open.push(WorldAction::Release { place, lock }),
                _ => {}
            }
        }
        let links = (0..self.nodes.len()).filter(|from| !self.links[place][*from].is_empty());
        open.extend(links.map(|from| WorldAction::Deliver { from, to: place }));
        match self.dead {
            None if self.may_die => open.push(WorldAction::Die { place }),
            Some(_) if !self.heard[place] => open.push(WorldAction::HearOfDeath { place }),
            _ => {}
        }
    }
}

impl World for LockWorld {
    type Action = WorldAction;

    fn actions(&self) -> Vec<WorldAction> {
        let mut open = Vec::new();
        for place in (0..self.nodes.len()).filter(|place| self.dead != Some(*place)) {
            self.actions_of(place, &mut open);
        }
        open
    }

    fn act(&mut self, action: WorldAction) -> Result<(), String> {
        let mut out = Vec::new();
        let number = |lock: usize| LockNumber(lock as u32);
        match action {
            WorldAction::Request { place, lock } => {
                self.requests -= 1;
                self.steps[place][lock] = Step::Waiting;
                self.nodes[place].request(number(lock), &mut out);
                self.execute(place, out)
            }
            WorldAction::GiveUp { place, lock } | WorldAction::Release { place, lock } => {
                self.steps[place][lock] = Step::Idle;
                self.nodes[place].release(number(lock), &mut out);
                self.execute(place, out)
            }
            WorldAction::Deliver { from, to } => {
                let message = self.links[to][from].pop_front().expect("an open action");
                self.nodes[to].receive(PlaceId(from as u32), message, &mut out);
                self.execute(to, out)
            }
            WorldAction::Die { place } => {
                (self.dead, self.may_die) = (Some(place), false);
                Ok(())
            }
            // The caller ends the waits of a place that learns of a death.
            WorldAction::HearOfDeath { place } => {
                self.heard[place] = true;
                self.nodes[place].place_died();
                self.steps[place] = [Step::Idle; LOCKS];
                Ok(())
            }
        }
    }

    fn is_over(&self, actions: &[WorldAction]) -> bool {
        actions.iter().all(|action| matches!(action, WorldAction::Die { .. }))
    }

    fn check_end(&self) -> Result<(), String> {
        let alive = (0..self.nodes.len()).filter(|place| self.dead != Some(*place));
        for place in alive {
            if self.steps[place] != [Step::Idle; LOCKS] {
                return Err(format!("a wait without end at place {place}: {:?}", self.steps[place]));
            }
            if self.dead.is_none()
                && !(self.nodes[place].own.is_empty() && self.nodes[place].queues.is_empty())
            {
                return Err(format!("a lock that nobody holds is kept at place {place}"));
            }
        }
        Ok(())
    }
}

fn explored(requests: usize, may_give_up: bool, may_die: bool) -> usize {
    let findings = explore(LockWorld::new(3, requests, may_give_up, may_die), 20_000_000);
    assert!(findings.failures.is_empty(), "{:#?}", findings.failures);
    findings.states
}

#[test]
fn no_order_of_three_places_and_two_locks_has_two_holders_or_a_wait_without_end() {
    assert!(explored(5, false, false) > 1_000);
    assert!(explored(4, true, false) > 1_000);
}

#[test]
fn a_death_at_any_moment_grants_no_lock_twice() {
    assert!(explored(3, true, true) > 1_000);
}

#[test]
fn messages_that_no_sound_place_sends_are_ignored() {
    let [first, second] = [0, 1].map(PlaceId);
    let (mut node, mut out) = (LockNode::new(first, 2), Vec::new());
    let lock = LockNumber(0);
    node.receive(second, LockMessage::Release { lock }, &mut out);
    node.receive(second, LockMessage::Grant { lock }, &mut out);
    node.receive(second, LockMessage::Request { lock: LockNumber(1) }, &mut out);
    assert_eq!(out, []);
    node.receive(second, LockMessage::Request { lock }, &mut out);
    node.receive(second, LockMessage::Request { lock }, &mut out);
    assert_eq!(out, [LockAction::Send { to: second, message: LockMessage::Grant { lock } }]);
    out.clear();
    node.request(lock, &mut out);
    assert_eq!(out, [], "it is held");
    node.receive(second, LockMessage::Release { lock }, &mut out);
    assert_eq!(out, [LockAction::Granted { lock }]);
}
