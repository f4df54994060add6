//! Balancers of many places against each other, with numbers for bags, in any order of events.
//!
//! Answers and gifts in flight are items of a list, any of which may come next. Each task makes others, so their total
//! is known, and all must be processed; when nothing is in flight, nothing is left.

use super::*;
use proptest::prelude::*;

/// A message in flight between places.
enum Flight {
    /// A request of the first place to the second one.
    Asked(usize, usize, StealKind),
    /// The answer of the second place to the first one.
    Answered(usize, usize, StealKind, u64),
    /// Tasks that the second place gives to the first one.
    Gift(usize, usize, u64),
}

/// Next step of a worker.
#[derive(Clone, Copy, PartialEq)]
enum Worker {
    None,
    Ready,
    Waiting,
}

struct Model {
    balancers: Vec<Balancer>,
    /// Number of tasks at each place, each a single task.
    bags: Vec<u64>,
    workers: Vec<Worker>,
    flights: Vec<Flight>,
    processed: Vec<u64>,
    state: u64,
}

fn drawn(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

/// Takes half of the tasks out.
fn split(bag: &mut u64) -> u64 {
    let part = *bag / 2;
    *bag -= part;
    part
}

impl Model {
    fn new(places: usize, tasks: u64, parameters: &Parameters, seed: u64) -> Model {
        let members: Vec<usize> = (0..places).collect();
        let mut state = seed;
        let one = |own| Balancer::new(own, &members, parameters, |below| drawn(&mut state, below));
        let balancers = members.iter().copied().map(one).collect();
        let mut model = Model {
            balancers,
            bags: vec![0; places],
            workers: vec![Worker::None; places],
            flights: Vec::new(),
            processed: vec![0; places],
            state,
        };
        model.bags[0] = tasks;
        let starts = model.balancers[0].put();
        model.start(0, starts);
        model
    }

    fn start(&mut self, place: usize, starts: bool) {
        assert_eq!(starts, self.workers[place] == Worker::None, "there is one worker where there are tasks");
        if starts {
            self.workers[place] = Worker::Ready;
        }
    }

    /// One step of the worker of `place`: a batch of up to `batch` tasks with gifts, or a request.
    fn work(&mut self, place: usize, batch: u64) {
        let count = batch.min(self.bags[place]);
        if count > 0 {
            self.bags[place] -= count;
            self.processed[place] += count;
            while let Some(thief) = self.balancers[place].next_thief() {
                let part = split(&mut self.bags[place]);
                if part == 0 {
                    return;
                }
                self.balancers[place].remove_thief();
                self.flights.push(Flight::Gift(thief, place, part));
            }
            return;
        }
        let state = &mut self.state;
        self.workers[place] = match self.balancers[place].ask(|below| drawn(state, below), |_| false) {
            Some((victim, kind)) => {
                self.flights.push(Flight::Asked(place, victim, kind));
                Worker::Waiting
            }
            None => Worker::None,
        };
    }

    fn arrive(&mut self, flight: Flight) {
        match flight {
            Flight::Asked(thief, victim, kind) => {
                let part = split(&mut self.bags[victim]);
                if part == 0 {
                    self.balancers[victim].refused(thief, kind);
                }
                self.flights.push(Flight::Answered(thief, victim, kind, part));
            }
            Flight::Answered(thief, victim, kind, part) => {
                assert!(self.workers[thief] == Worker::Waiting);
                self.workers[thief] = Worker::Ready;
                if part > 0 {
                    self.balancers[thief].answered(victim, kind);
                    self.bags[thief] += part;
                }
            }
            Flight::Gift(thief, giver, part) => {
                self.bags[thief] += part;
                let starts = self.balancers[thief].accept(giver);
                self.start(thief, starts);
            }
        }
    }

    /// Steps in any order until nothing can happen; returns how many there were.
    fn run(&mut self, batch: u64) -> u64 {
        for step in 0.. {
            let ready: Vec<usize> =
                (0..self.bags.len()).filter(|place| self.workers[*place] == Worker::Ready).collect();
            let choices = ready.len() + self.flights.len();
            if choices == 0 {
                return step;
            }
            match drawn(&mut self.state, choices).checked_sub(ready.len()) {
                None => {
                    let place = ready[drawn(&mut self.state, ready.len())];
                    self.work(place, batch);
                }
                Some(flight) => {
                    let flight = self.flights.swap_remove(flight);
                    self.arrive(flight);
                }
            }
        }
        unreachable!("a run ends")
    }
}

proptest! {
    #[test]
    fn all_tasks_are_processed_once_and_then_all_places_rest(
        places in 1_usize..24,
        tasks in 1_u64..3000,
        (batch, random_steals, lifeline_base) in (1_u64..40, 0_u32..6, 2_u32..6),
        seed in any::<u64>(),
    ) {
        let parameters = Parameters { random_steals, lifeline_base, ..Parameters::default() };
        let mut model = Model::new(places, tasks, &parameters, seed);
        model.run(batch);
        prop_assert_eq!(model.processed.iter().sum::<u64>(), tasks);
        prop_assert!(model.bags.iter().all(|bag| *bag == 0));
        prop_assert!(model.workers.iter().all(|worker| *worker == Worker::None));
        // Each lifeline remembers a place at rest, so new tasks anywhere would reach all.
        for (place, balancer) in model.balancers.iter().enumerate() {
            let mut remembered = balancer.remembered.clone();
            let mut thieves: Vec<usize> = balancer.thieves.iter().copied().collect();
            remembered.sort_unstable();
            thieves.sort_unstable();
            prop_assert_eq!(remembered, thieves, "of place {}", place);
        }
    }
}

#[test]
fn tasks_of_one_place_reach_all_others() {
    let mut model = Model::new(17, 100_000, &Parameters::default(), 3);
    model.run(8);
    let least = model.processed.iter().min().copied();
    assert!(least.is_some_and(|least| least > 1000), "{:?}", model.processed);
}

#[test]
fn a_stranger_is_not_remembered_and_nobody_twice() {
    let members: Vec<usize> = (0..9).collect();
    let mut balancer = Balancer::new(0, &members, &Parameters::default(), |_| 0);
    while balancer.next_thief().is_some() {
        balancer.remove_thief();
    }
    for thief in [1, 1, 5, 1000, usize::MAX, 4] {
        balancer.refused(thief, StealKind::Lifeline);
    }
    balancer.refused(4, StealKind::Random);
    assert_eq!(balancer.thieves, [1, 4]);
}
