//! Ends by hand, and any jobs against a server that is given away picosecond by picosecond.

use super::*;
use proptest::prelude::*;

/// A job: when it begins, how long it takes alone, and how long of that the server is busy with it.
type Asked = (u64, u64, u64);

fn take(server: &mut FractionalReservations, present: u64, (from, alone, served): Asked) -> u64 {
    server.take(Picoseconds(present), Picoseconds(from), Picoseconds(alone), Picoseconds(served)).0
}

/// When jobs end that ask in this order, at one moment before all of them.
fn ends(jobs: &[Asked]) -> Vec<u64> {
    let mut server = FractionalReservations::default();
    jobs.iter().map(|job| take(&mut server, 0, *job)).collect()
}

/// The same picosecond by picosecond: between which times each job ends if it is up to so many picoseconds shorter
/// or longer than it is. A server that is full for long makes much of a little that is left.
fn stepwise(jobs: &[Asked], slack: f64) -> Vec<(u64, u64)> {
    let mut free: Vec<f64> = Vec::new();
    let mut ends = Vec::new();
    for job in jobs {
        let [sooner, later] = [-slack, slack].map(|more| serve(&mut free.clone(), job, more));
        serve(&mut free, job, 0.0);
        ends.push((sooner, later));
    }
    ends
}

/// Takes one job, made longer by `more`, of what is free in each picosecond; returns when it ends.
fn serve(free: &mut Vec<f64>, &(from, alone, served): &Asked, more: f64) -> u64 {
    let (mut left, wanted) = (alone as f64 + more, served as f64 / alone as f64);
    let mut time = from as usize;
    while left > 1e-9 {
        free.resize(free.len().max(time + 1), 1.0);
        let speed = if served == 0 { 1.0 } else { (free[time] / wanted).min(1.0) };
        let part = speed.min(left);
        free[time] -= wanted * part;
        left -= part;
        time += 1;
    }
    time as u64
}

fn traffic(jobs: usize) -> impl Strategy<Value = Vec<Asked>> {
    let asked = (0..400_u64, 1..300_u64, 0..200_u64);
    let asked = asked.prop_map(|(from, alone, served)| (from, alone, served.min(alone)));
    prop::collection::vec(asked, 1..jobs)
}

#[test]
fn three_readers_of_a_third_each_do_not_notice_each_other_and_of_twelve_the_last_takes_four_times_as_long() {
    assert_eq!(ends(&[(0, 3_000, 1_000); 3]), [3_000; 3]);
    let twelve = ends(&[(0, 3_000, 1_000); 12]);
    assert_eq!((twelve[0], twelve[3], twelve[11]), (3_000, 6_000, 12_000));
}

#[test]
fn rounds_of_steps_take_what_equal_shares_would_but_for_the_first() {
    // Twelve places whose steps need a third of the server; each begins its next step when it is through.
    let (mut server, mut clocks) = (FractionalReservations::default(), [0; 12]);
    for _ in 0..12 * 50 {
        let present = *clocks.iter().min().unwrap();
        let place = clocks.iter().position(|clock| *clock == present).unwrap();
        clocks[place] = take(&mut server, present, (present, 3_000, 1_000));
    }
    let last = *clocks.iter().max().unwrap();
    assert_eq!(last, 50 * 12_000, "the server never rests");
    assert!(clocks.iter().all(|clock| *clock >= 49 * 12_000), "{clocks:?}");
}

#[test]
fn a_job_that_needs_no_server_takes_its_time_and_nothing_of_it() {
    assert_eq!(ends(&[(5, 100, 100), (5, 100, 0), (5, 0, 0), (5, 10, 5)]), [105, 105, 5, 115]);
}

#[test]
fn a_job_that_says_less_time_than_the_server_needs_takes_what_that_needs() {
    assert_eq!(ends(&[(0, 100, 200), (0, 0, 100)]), [200, 300]);
}

#[test]
fn of_too_many_steps_the_shortest_are_joined_and_longer_gaps_stay() {
    let mut server = FractionalReservations::default();
    (0..STEPS_MAX as u64 / 2 - 1).for_each(|job| _ = take(&mut server, 0, (1_000 * job, 500, 500)));
    (0..4).for_each(|job| _ = take(&mut server, 0, (100_000 + 20 * job, 10, 10)));
    assert_eq!(server.steps.len(), STEPS_MAX);
    for gap in 0..STEPS_MAX as u64 / 2 - 1 {
        let from = 1_000 * gap + 500;
        assert_eq!(take(&mut server, 0, (from, 500, 500)), from + 500);
    }
}

#[test]
fn what_is_past_is_forgotten_and_the_rest_stays() {
    let mut server = FractionalReservations::default();
    (0..1_000).for_each(|job| _ = take(&mut server, 100 * job, (100 * job, 50, 25)));
    assert!(server.steps.len() <= 4, "{server:?}");
    assert_eq!(take(&mut server, 99_900, (99_900, 50, 50)), 99_975);
}

proptest! {
    #[test]
    fn jobs_end_as_in_a_server_that_is_given_away_picosecond_by_picosecond(jobs in traffic(12)) {
        // Each end is rounded up, and the rest of its picosecond counts as taken.
        let slack = jobs.len() as f64;
        for ((ours, theirs), (from, alone, _)) in ends(&jobs).into_iter().zip(stepwise(&jobs, slack)).zip(&jobs) {
            prop_assert!(ours >= from + alone);
            let (sooner, later) = theirs;
            prop_assert!((sooner..=later).contains(&ours), "{ours}, not from {sooner} to {later}");
        }
    }

    #[test]
    fn the_server_gives_no_more_than_it_has_and_no_less(jobs in traffic(40)) {
        let mut server = FractionalReservations::default();
        let ends: Vec<u64> = jobs.iter().map(|job| take(&mut server, 0, *job)).collect();
        let given: u128 = server
            .steps
            .windows(2)
            .map(|pair| u128::from(pair[0].taken) * u128::from(pair[1].from - pair[0].from))
            .sum();
        let asked: u64 = jobs.iter().map(|job| job.2).sum();
        let given = (given >> FRACTION_BITS) as u64;
        prop_assert!(given.abs_diff(asked) <= 1 + jobs.len() as u64, "{given} of {asked}");
        prop_assert!(server.steps.iter().all(|step| step.taken <= WHOLE));
        prop_assert_eq!(server.steps.last().unwrap_or(&Step::default()).taken, 0);
        // What lies within any two moments fits.
        let last = ends.iter().max().copied().unwrap_or(0);
        prop_assert!(asked <= last + jobs.len() as u64);
    }

    #[test]
    fn however_many_ask_few_steps_are_kept_and_nothing_is_lost(
        jobs in prop::collection::vec((0..100_000_u64, 1..300_u64, 1..300_u64), 200..400),
    ) {
        let mut server = FractionalReservations::default();
        for (from, alone, served) in &jobs {
            let end = take(&mut server, 0, (*from, *alone, *served.min(alone)));
            prop_assert!(end >= from + alone);
            prop_assert!(server.steps.len() <= STEPS_MAX);
        }
        let length = |pair: &[Step]| u128::from(pair[1].from - pair[0].from);
        let given: u128 = server.steps.windows(2).map(|pair| u128::from(pair[0].taken) * length(pair)).sum();
        let asked: u64 = jobs.iter().map(|(_, alone, served)| served.min(alone)).sum();
        let given = (given >> FRACTION_BITS) as u64;
        prop_assert!(given + 2 >= asked && given <= asked + jobs.len() as u64, "{given} of {asked}");
    }
}
