//! The table of steps by hand, random steps, and the scores of cores.

use super::*;
use proptest::prelude::*;

fn any_step() -> impl Strategy<Value = JobStep> {
    let reports = [
        JobReport::Started,
        JobReport::Saved,
        JobReport::Unsaved { was_paused: false },
        JobReport::Unsaved { was_paused: true },
        JobReport::Killed,
        JobReport::Ended,
        JobReport::Faulted,
        JobReport::Lost { is_saved: false },
        JobReport::Lost { is_saved: true },
    ];
    prop_oneof![
        proptest::sample::select(&JobVerb::ALL[..]).prop_map(JobStep::Commanded),
        proptest::sample::select(reports.to_vec()).prop_map(JobStep::Reported),
    ]
}

/// The whole table of verbs, by hand: a state, the verbs that it permits, and the states after them.
#[test]
fn each_state_permits_the_verbs_of_the_table_and_no_others() {
    let table: [(JobState, &[(JobVerb, JobState)]); 11] = [
        (JobState::New, &[(JobVerb::Start, JobState::Creating), (JobVerb::Remove, JobState::New)]),
        (JobState::Creating, &[(JobVerb::Kill, JobState::Stopping)]),
        (
            JobState::Running,
            &[
                (JobVerb::Pause, JobState::Paused),
                (JobVerb::Checkpoint, JobState::Checkpointing),
                (JobVerb::Move, JobState::Moving),
                (JobVerb::Kill, JobState::Stopping),
            ],
        ),
        (
            JobState::Paused,
            &[
                (JobVerb::Resume, JobState::Running),
                (JobVerb::Checkpoint, JobState::Checkpointing),
                (JobVerb::Move, JobState::Moving),
                (JobVerb::Kill, JobState::Stopping),
            ],
        ),
        (JobState::Checkpointing, &[(JobVerb::Kill, JobState::Stopping)]),
        (
            JobState::Checkpointed,
            &[(JobVerb::Start, JobState::Creating), (JobVerb::Remove, JobState::Checkpointed)],
        ),
        (JobState::Moving, &[(JobVerb::Kill, JobState::Stopping)]),
        (JobState::Stopping, &[]),
        (JobState::Stopped, &[(JobVerb::Start, JobState::Creating), (JobVerb::Remove, JobState::Stopped)]),
        (JobState::Finished, &[(JobVerb::Remove, JobState::Finished)]),
        (JobState::Failed, &[(JobVerb::Remove, JobState::Failed)]),
    ];
    for (state, allowed) in table {
        for verb in JobVerb::ALL {
            let step = JobStep::Commanded(verb);
            let after = allowed.iter().find(|(other, _)| *other == verb).map(|(_, after)| *after);
            assert_eq!(state.after(step), after.ok_or(IllegalStep { state, step }), "{state} {verb:?}");
        }
        assert_eq!(JobState::of_name(state.name()), Some(state));
    }
}

#[test]
fn nothing_is_reported_of_a_job_that_is_nowhere() {
    for state in JobState::ALL.into_iter().filter(|state| !state.is_active()) {
        for report in
            [JobReport::Started, JobReport::Ended, JobReport::Faulted, JobReport::Lost { is_saved: true }]
        {
            assert!(state.after(JobStep::Reported(report)).is_err(), "{state} {report:?}");
        }
    }
}

#[test]
fn a_refused_verb_names_the_states_that_allow_it() {
    let refused = JobState::Finished.after(JobStep::Commanded(JobVerb::Pause)).unwrap_err();
    assert_eq!(refused.to_string(), "a job that is finished cannot pause; allowed when running");
}

proptest! {
    /// An active job can always end, and one that is to stop never runs again.
    #[test]
    fn no_sequence_of_steps_leads_where_a_job_is_stuck(steps in proptest::collection::vec(any_step(), 0..60)) {
        let mut state = JobState::New;
        for step in steps {
            let Ok(after) = state.after(step) else { continue };
            if state == JobState::Stopping {
                prop_assert!(!matches!(after, JobState::Running | JobState::Paused | JobState::Moving));
            }
            state = after;
            if state.is_active() {
                prop_assert_eq!(state.after(JobStep::Reported(JobReport::Ended)), Ok(JobState::Finished));
                let lost = state.after(JobStep::Reported(JobReport::Lost { is_saved: false }));
                prop_assert!(lost.is_ok());
            } else {
                prop_assert!(state.after(JobStep::Commanded(JobVerb::Remove)).is_ok());
            }
        }
    }

    #[test]
    fn a_move_never_ends_where_it_began_nor_at_a_dead_place_nor_where_it_is_worse(
        loads in proptest::collection::vec((0.0..100.0_f64, 0.0..100.0_f64, 1_u32..9, any::<bool>()), 1..20),
        from in any::<proptest::sample::Index>(),
    ) {
        let core = |(processor, memory, jobs, is_dead)| CoreLoad { processor, memory, jobs, is_dead };
        let cores: Vec<CoreLoad> = loads.into_iter().map(core).collect();
        let from = from.index(cores.len());
        let own = CoreLoad { processor: cores[from].processor / 2.0, memory: 1.0, jobs: 1, is_dead: false };
        for policy in Policy::ALL {
            if let Some(to) = policy.choose_other(&cores, from, &own) {
                prop_assert!(to != from && !cores[to].is_dead);
                let others = cores.iter().enumerate().filter(|(at, core)| *at != from && !core.is_dead);
                let is_best = others.map(|(_, core)| policy.score(core)).all(|score| policy.score(&cores[to]) <= score);
                prop_assert!(is_best);
            }
        }
    }
}

#[test]
fn the_published_score_takes_ten_waiting_jobs_for_a_tenth_of_a_processor() {
    let busy = CoreLoad { processor: 11.0, ..CoreLoad::default() };
    let full = CoreLoad { jobs: 10, ..CoreLoad::default() };
    assert_eq!(Policy::Manyman.choose(&[busy, full]), Some(1));
    assert_eq!(Policy::Balanced.choose(&[busy, full]), Some(0));
    let dead = CoreLoad { is_dead: true, ..CoreLoad::default() };
    assert_eq!(Policy::Balanced.choose(&[dead, full]), Some(1));
    assert_eq!(Policy::Balanced.choose(&[dead]), None);
    let alone = CoreLoad { jobs: 1, processor: 100.0, ..CoreLoad::default() };
    assert_eq!(
        Policy::Balanced.choose_other(&[alone, CoreLoad::default()], 0, &alone),
        None,
        "no better core"
    );
}
