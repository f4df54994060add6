//! Ends by hand, and random jobs against a server simulated step by step.

use super::*;
use proptest::prelude::*;

/// A job: its start, its duration alone, and the part of that duration for which it needs the server.
type Asked = (u64, u64, u64);

fn take(server: &mut MaxMinServer, present: u64, owner: u32, (from, alone, served): Asked) -> u64 {
    let length = JobTime { alone: Picoseconds(alone), served: Picoseconds(served) };
    server.take(Picoseconds(present), owner, Picoseconds(from), length).0
}

fn end_of(server: &mut MaxMinServer, present: u64, owner: u32) -> u64 {
    server.end_of(Picoseconds(present), owner).expect("it has a job").0
}

/// Returns the ends of jobs of different owners, requested in this order at one time before all of them.
fn ends(jobs: &[Asked]) -> Vec<u64> {
    let mut server = MaxMinServer::default();
    (0..).zip(jobs).for_each(|(owner, job)| _ = take(&mut server, 0, owner, *job));
    (0..jobs.len() as u32).map(|owner| end_of(&mut server, u64::MAX, owner)).collect()
}

/// The same ends by simulation in floating point, in steps of a sixteenth of a picosecond, without events.
fn stepwise(jobs: &[Asked]) -> Vec<f64> {
    const PARTS: f64 = 16.0;
    let mut left: Vec<f64> = jobs.iter().map(|(_, alone, served)| (*alone).max(*served) as f64).collect();
    let wanted: Vec<f64> = jobs.iter().zip(&left).map(|(job, alone)| job.2 as f64 / alone).collect();
    let mut ends = vec![0.0; jobs.len()];
    for part in 0.. {
        let now = f64::from(part) / PARTS;
        let active: Vec<usize> =
            (0..jobs.len()).filter(|&job| jobs[job].0 as f64 <= now && left[job] > 1e-9).collect();
        if active.is_empty() && jobs.iter().all(|job| job.0 as f64 <= now) {
            break;
        }
        // Water filling: the job with the smallest demand first.
        let (mut free, mut order) = (1.0, active);
        order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
        for (rank, &job) in order.iter().enumerate() {
            let given = wanted[job].min(free / (order.len() - rank) as f64);
            free -= given;
            left[job] -= given / wanted[job] / PARTS;
            if left[job] <= 1e-9 {
                ends[job] = now + 1.0 / PARTS;
            }
        }
    }
    ends
}

fn traffic(jobs: usize) -> impl Strategy<Value = Vec<Asked>> {
    let asked = (0..400_u64, 1..300_u64, 1..200_u64);
    let asked = asked.prop_map(|(from, alone, served)| (from, alone, served.min(alone)));
    prop::collection::vec(asked, 1..jobs)
}

#[test]
fn three_of_a_third_each_do_not_notice_each_other_and_twelve_take_four_times_as_long() {
    assert_eq!(ends(&[(0, 3_000, 1_000); 3]), [3_000; 3]);
    // A third has no exact binary fraction, so the error is up to a picosecond.
    assert!(ends(&[(0, 3_000, 1_000); 12]).iter().all(|end| end.abs_diff(12_000) <= 1));
}

#[test]
fn who_comes_later_slows_what_is_left_and_who_goes_frees_it() {
    // The first job is alone until 100; both have half until 300, when it ends; the second has 100 left.
    let mut server = MaxMinServer::default();
    assert_eq!(take(&mut server, 0, 0, (0, 200, 200)), 200);
    assert_eq!(take(&mut server, 100, 1, (100, 200, 200)), 400);
    assert_eq!(end_of(&mut server, 100, 0), 300);
    assert_eq!((end_of(&mut server, 300, 0), end_of(&mut server, 400, 1)), (300, 400));
    assert_eq!(server.end_of(Picoseconds(400), 1), None, "its owner has heard of it");
}

#[test]
fn who_wants_little_gets_it_and_leaves_the_rest_to_others() {
    // Two jobs that need a tenth each do not delay one that needs eight tenths.
    assert_eq!(ends(&[(0, 1_000, 100), (0, 1_000, 100), (0, 1_000, 800)]), [1_000; 3]);
    // Two jobs share nine tenths equally.
    let ends = ends(&[(0, 2_000, 200), (0, 900, 900), (0, 900, 900)]);
    assert!(ends.iter().all(|end| end.abs_diff(2_000) <= 1), "{ends:?}");
}

#[test]
fn what_an_owner_asks_for_before_it_is_through_makes_its_job_longer() {
    let mut server = MaxMinServer::default();
    let pieces: Vec<u64> = (0..64).map(|piece| take(&mut server, 0, 7, (10 * piece, 10, 10))).collect();
    assert_eq!((pieces[0], pieces[63]), (10, 640));
    // The pause of 60 counts as part of the job, which then takes 800, 740 of them with the server.
    assert_eq!(take(&mut server, 0, 7, (700, 100, 100)), 800);
    assert_eq!(take(&mut server, 0, 8, (0, 740, 740)), 1_480);
    assert!(end_of(&mut server, 0, 7).abs_diff(1_484) < 8);
}

#[test]
fn a_job_that_needs_no_server_takes_its_time_and_nothing_of_it() {
    let mut server = MaxMinServer::default();
    assert_eq!(take(&mut server, 5, 0, (5, 100, 0)), 105);
    assert_eq!(take(&mut server, 5, 1, (5, 100, 100)), 105);
    assert_eq!(server.end_of(Picoseconds(5), 0), None);
}

#[test]
fn a_job_that_says_less_time_than_the_server_needs_takes_what_that_needs() {
    assert_eq!(ends(&[(0, 100, 200), (200, 0, 100)]), [200, 300]);
}

#[test]
fn of_thousands_that_are_alike_each_is_told_its_end_at_once() {
    let mut server = MaxMinServer::default();
    (0..3_000).for_each(|owner| _ = take(&mut server, 0, owner, (0, 3_000, 1_000)));
    assert!(end_of(&mut server, 0, 7).abs_diff(3_000_000) <= 3_000);
    assert!(end_of(&mut server, 4_000_000, 2_999).abs_diff(3_000_000) <= 3_000);
}

proptest! {
    #[test]
    fn jobs_end_as_in_a_server_that_is_watched_at_each_moment(jobs in traffic(12)) {
        for (ours, theirs) in ends(&jobs).into_iter().zip(stepwise(&jobs)) {
            // Each end is rounded up, and a late end delays other jobs.
            prop_assert!((ours as f64 - theirs).abs() <= 2.0 + jobs.len() as f64, "{ours} and {theirs}");
        }
    }

    #[test]
    fn an_answer_never_becomes_sooner_and_the_last_one_is_for_good(jobs in traffic(MOMENTS_MAX)) {
        let mut order = jobs.clone();
        order.sort_unstable();
        let mut server = MaxMinServer::default();
        let mut answers: Vec<u64> = Vec::new();
        for (owner, job) in (0..).zip(&order) {
            answers.push(take(&mut server, job.0, owner, *job));
            for (owner, before) in (0..).zip(answers.iter_mut()) {
                let Some(after) = server.end_of(Picoseconds(job.0), owner) else { continue };
                prop_assert!(after.0 + 1 >= *before, "{after} after {before}");
                *before = after.0;
            }
        }
        for (owner, end) in (0..).zip(ends(&order)) {
            let heard = server.end_of(Picoseconds(u64::MAX), owner).map_or(answers[owner as usize], |end| end.0);
            prop_assert!(heard.abs_diff(end) <= jobs.len() as u64, "{heard} and {end}");
        }
    }

    #[test]
    fn however_many_there_are_no_answer_is_later_than_the_end(jobs in traffic(200)) {
        let mut server = MaxMinServer::default();
        let answers: Vec<u64> = (0..).zip(&jobs).map(|(owner, job)| take(&mut server, 0, owner, *job)).collect();
        for (answer, end) in answers.into_iter().zip(ends(&jobs)) {
            prop_assert!(answer <= end + jobs.len() as u64, "{answer} and {end}");
        }
    }

    #[test]
    fn nobody_is_faster_than_alone_and_the_server_gives_no_more_than_it_has(jobs in traffic(40)) {
        let ends = ends(&jobs);
        for ((from, alone, _), end) in jobs.iter().zip(&ends) {
            prop_assert!(*end >= from + alone);
        }
        for (from, until) in jobs.iter().flat_map(|(from, ..)| ends.iter().map(move |end| (*from, *end))) {
            let within = jobs.iter().zip(&ends).filter(|(job, end)| job.0 >= from && **end <= until);
            let busy: u64 = within.map(|(job, _)| job.2).sum();
            prop_assert!(busy == 0 || busy <= until - from + jobs.len() as u64, "{busy} from {from} to {until}");
        }
    }

    #[test]
    fn a_further_job_or_a_longer_one_lets_nobody_end_sooner(
        jobs in traffic(12), further in traffic(2), more in 1..100_u64
    ) {
        let before = ends(&jobs);
        let mut crowd = jobs.clone();
        crowd.push(further[0]);
        let mut longer = jobs.clone();
        // The duration and the service grow alike, so the share stays the same.
        longer[0] = (longer[0].0, longer[0].1 * (more + 1), longer[0].2 * (more + 1));
        for after in [ends(&crowd), ends(&longer)] {
            for (before, after) in before.iter().zip(after) {
                prop_assert!(after + 12 >= *before, "{after} and {before}");
            }
        }
    }
}
