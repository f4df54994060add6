//! The models exclusive and strong. Every place has copies of the pages that it may access, so a wrong grant shows as a
//! stale or lost value beside a sequential memory. A place holds a page from its grant until its access, as guards do.

use super::super::{Consistency, PageAccess, PageAction, PageMessage, PageNumber, PermissionNode};
use super::{Choices, seeds};
use crate::PlaceId;
use crate::tests::{World, explore};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Idle,
    Waiting(PageNumber, PageAccess),
    Holding(PageNumber, PageAccess),
}

#[derive(Clone, Copy, Debug)]
enum WorldAction {
    Begin { place: usize, page: u32, access: PageAccess },
    Perform { place: usize },
    Deliver { from: usize, to: usize },
    Revoke { place: usize },
    Die { place: usize },
    HearOfDeath { place: usize },
}

#[derive(Clone, Hash)]
struct PermissionWorld {
    nodes: Vec<PermissionNode>,
    /// By receiver and sender.
    links: Vec<Vec<VecDeque<PageMessage>>>,
    /// Access of the program, and the value that it sees, by place and page.
    copies: Vec<Vec<Option<(PageAccess, u8)>>>,
    revocations: Vec<VecDeque<(PageNumber, bool)>>,
    steps: Vec<Step>,
    /// Contents of the memory from which pages come.
    frames: Vec<u8>,
    /// The sequential memory.
    truth: Vec<u8>,
    begins: usize,
    may_die: bool,
    dead: Option<usize>,
    messages: usize,
}

impl PermissionWorld {
    fn new(places: usize, pages: usize, model: Consistency, begins: usize, may_die: bool) -> PermissionWorld {
        let node = |place| PermissionNode::new(PlaceId(place), places as u32, pages as u32, model);
        PermissionWorld {
            nodes: (0..places as u32).map(node).collect(),
            links: vec![vec![VecDeque::new(); places]; places],
            copies: vec![vec![None; pages]; places],
            revocations: vec![VecDeque::new(); places],
            steps: vec![Step::Idle; places],
            frames: vec![0; pages],
            truth: vec![0; pages],
            begins,
            may_die,
            dead: None,
            messages: 0,
        }
    }

    fn execute(&mut self, place: usize, actions: Vec<PageAction>) -> Result<(), String> {
        for action in actions {
            match action {
                PageAction::Send { to, message } => {
                    self.messages += 1;
                    if self.dead != Some(to.index()) {
                        self.links[to.index()][place].push_back(message);
                    }
                }
                PageAction::Revoke { page, keeps_read } => {
                    self.revocations[place].push_back((page, keeps_read));
                }
                PageAction::Map { page, access } => self.map(place, page, access)?,
            }
        }
        Ok(())
    }

    fn map(&mut self, place: usize, page: PageNumber, access: PageAccess) -> Result<(), String> {
        // A place that has learnt of a death keeps its pages as they are, and gives them to no guard.
        let is_lost = self.nodes[place].dead().is_some();
        let sound = |other: &usize| self.is_alive(*other) && self.nodes[*other].dead().is_none();
        for other in (0..self.nodes.len()).filter(|other| *other != place && !is_lost).filter(sound) {
            let conflicts = |(held, _): (PageAccess, u8)| held.max(access) == PageAccess::Write;
            if self.copies[other][page.index()].is_some_and(conflicts) {
                return Err(format!("two permissions that conflict: place {place} and place {other}"));
            }
        }
        let value = self.copies[place][page.index()].map_or(self.frames[page.index()], |(_, value)| value);
        self.copies[place][page.index()] = Some((access, value));
        if let Step::Waiting(waited, needs) = self.steps[place]
            && waited == page
            && access >= needs
        {
            self.steps[place] = if is_lost { Step::Idle } else { Step::Holding(page, needs) };
        }
        Ok(())
    }

    fn begin(&mut self, place: usize, page: PageNumber, access: PageAccess) -> Result<(), String> {
        self.begins -= 1;
        if self.copies[place][page.index()].is_some_and(|(held, _)| held >= access) {
            self.steps[place] = Step::Holding(page, access);
            return Ok(());
        }
        self.steps[place] = Step::Waiting(page, access);
        let mut actions = Vec::new();
        self.nodes[place].fault(page, access, &mut actions);
        self.execute(place, actions)
    }

    fn perform(&mut self, place: usize) -> Result<(), String> {
        let Step::Holding(page, access) = self.steps[place] else { return Ok(()) };
        self.steps[place] = Step::Idle;
        let Some((_, value)) = &mut self.copies[place][page.index()] else {
            return Err("a page was taken from a guard".into());
        };
        if *value != self.truth[page.index()] && self.dead.is_none() {
            return Err(format!("a stale value at place {place}: {value} of {}", self.truth[page.index()]));
        }
        if access == PageAccess::Write {
            self.truth[page.index()] = self.truth[page.index()].wrapping_add(1);
            *value = self.truth[page.index()];
        }
        Ok(())
    }

    fn revoke(&mut self, place: usize) -> Result<(), String> {
        let (page, keeps_read) = self.revocations[place].pop_front().expect("an open action");
        let copy = &mut self.copies[place][page.index()];
        if let Some((PageAccess::Write, value)) = *copy {
            self.frames[page.index()] = value;
        }
        *copy = copy.filter(|_| keeps_read).map(|(_, value)| (PageAccess::Read, value));
        let mut actions = Vec::new();
        self.nodes[place].revoked(page, &mut actions);
        self.execute(place, actions)
    }

    fn is_alive(&self, place: usize) -> bool {
        self.dead != Some(place)
    }

    /// Returns `true` if there is a next revocation and no guard holds its page.
    fn can_revoke(&self, place: usize) -> bool {
        let held = match self.steps[place] {
            Step::Holding(page, _) => Some(page),
            _ => None,
        };
        self.revocations[place].front().is_some_and(|(page, _)| Some(*page) != held)
    }
}

impl World for PermissionWorld {
    type Action = WorldAction;

    fn actions(&self) -> Vec<WorldAction> {
        let places = 0..self.nodes.len();
        let mut open = Vec::new();
        for place in places.clone().filter(|place| self.is_alive(*place)) {
            if self.steps[place] == Step::Idle && self.begins > 0 && self.nodes[place].dead().is_none() {
                for page in 0..self.frames.len() as u32 {
                    let accesses = [PageAccess::Read, PageAccess::Write];
                    open.extend(accesses.map(|access| WorldAction::Begin { place, page, access }));
                }
            }
            if matches!(self.steps[place], Step::Holding(..)) {
                open.push(WorldAction::Perform { place });
            }
            let links = places.clone().filter(|from| !self.links[place][*from].is_empty());
            open.extend(links.map(|from| WorldAction::Deliver { from, to: place }));
            if self.can_revoke(place) {
                open.push(WorldAction::Revoke { place });
            }
            match self.dead {
                None if self.may_die => open.push(WorldAction::Die { place }),
                Some(_) if self.nodes[place].dead().is_none() => {
                    open.push(WorldAction::HearOfDeath { place })
                }
                _ => {}
            }
        }
        open
    }

    fn act(&mut self, action: WorldAction) -> Result<(), String> {
        let mut actions = Vec::new();
        match action {
            WorldAction::Begin { place, page, access } => self.begin(place, PageNumber(page), access),
            WorldAction::Perform { place } => self.perform(place),
            WorldAction::Revoke { place } => self.revoke(place),
            WorldAction::Deliver { from, to } => {
                let message = self.links[to][from].pop_front().expect("an open action");
                self.nodes[to].receive(PlaceId(from as u32), message, &mut actions);
                self.execute(to, actions)
            }
            WorldAction::Die { place } => {
                self.dead = Some(place);
                self.may_die = false;
                self.links[place].iter_mut().for_each(VecDeque::clear);
                Ok(())
            }
            WorldAction::HearOfDeath { place } => {
                let dead = self.dead.expect("an open action");
                self.nodes[place].place_died(PlaceId(dead as u32), &mut actions);
                self.execute(place, actions)
            }
        }
    }

    fn is_over(&self, actions: &[WorldAction]) -> bool {
        actions.iter().all(|action| matches!(action, WorldAction::Die { .. }))
    }

    fn check_end(&self) -> Result<(), String> {
        for (place, step) in self.steps.iter().enumerate().filter(|(place, _)| self.is_alive(*place)) {
            if *step != Step::Idle {
                return Err(format!("a wait without end: {step:?} at place {place}"));
            }
        }
        Ok(())
    }
}

/// Explores every order of a world of three places and two pages.
fn explored(model: Consistency, begins: usize, may_die: bool) -> usize {
    let findings = explore(PermissionWorld::new(3, 2, model, begins, may_die), 20_000_000);
    assert!(findings.failures.is_empty(), "{:#?}", findings.failures);
    findings.states
}

#[test]
fn no_order_of_three_places_and_two_pages_breaks_the_models() {
    assert!(explored(Consistency::Strong, 4, false) > 10_000);
    assert!(explored(Consistency::Exclusive, 4, false) > 10_000);
}

#[test]
fn a_death_at_any_moment_ends_each_wait() {
    assert!(explored(Consistency::Strong, 3, true) > 10_000);
    assert!(explored(Consistency::Exclusive, 3, true) > 10_000);
}

#[test]
fn random_programs_see_a_sequential_memory() {
    for seed in seeds() {
        for model in [Consistency::Exclusive, Consistency::Strong] {
            let mut choices = Choices(seed);
            let (places, pages) = (2 + choices.below(7), 1 + choices.below(5));
            let mut world = PermissionWorld::new(places, pages, model, 60, seed % 4 == 3);
            loop {
                let mut open = world.actions();
                // A death is rare among the actions.
                if choices.below(50) > 0 {
                    open.retain(|action| !matches!(action, WorldAction::Die { .. }));
                }
                if open.is_empty() {
                    break;
                }
                let action = open[choices.below(open.len())];
                world.act(action).unwrap_or_else(|error| panic!("seed {seed}, {model:?}: {error}"));
            }
            world.check_end().unwrap_or_else(|error| panic!("seed {seed}, {model:?}: {error}"));
        }
    }
}

/// Runs one access to its end; returns the number of messages.
fn messages_of(world: &mut PermissionWorld, place: usize, page: u32, access: PageAccess) -> usize {
    let before = world.messages;
    world.act(WorldAction::Begin { place, page, access }).unwrap();
    loop {
        let open = world.actions();
        let next = open.into_iter().find(|action| !matches!(action, WorldAction::Begin { .. }));
        let Some(action) = next else { break };
        world.act(action).unwrap();
    }
    world.messages - before
}

#[test]
fn an_access_takes_the_messages_that_were_derived() {
    let mut world = PermissionWorld::new(6, 6, Consistency::Strong, 100, false);
    assert_eq!(messages_of(&mut world, 1, 0, PageAccess::Read), 2, "a page that nobody has");
    assert_eq!(messages_of(&mut world, 1, 0, PageAccess::Read), 0, "a page that is held");
    for (place, readers) in [(2, 2), (3, 2), (4, 2)] {
        assert_eq!(messages_of(&mut world, place, 0, PageAccess::Read), readers);
    }
    assert_eq!(
        messages_of(&mut world, 5, 0, PageAccess::Write),
        2 + 2 * 4,
        "a write with four other readers"
    );
    assert_eq!(messages_of(&mut world, 1, 0, PageAccess::Read), 4, "a page that a third place writes");
    assert_eq!(messages_of(&mut world, 0, 0, PageAccess::Read), 0, "the home reads what is only read");
    assert_eq!(
        messages_of(&mut world, 0, 0, PageAccess::Write),
        2 * 2,
        "the home writes what two places read"
    );
}
