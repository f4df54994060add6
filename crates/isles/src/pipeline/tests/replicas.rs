//! Replicas of stages in seeded worlds: order, changes of their number, errors.

use super::*;

#[test]
fn results_come_in_order_each_once_behind_replicas_in_worlds_of_any_order_and_delay() {
    for places in [2, 3, 7, 20, 30] {
        for seed in 0..20 {
            for has_states in [true, false] {
                let (result, ..) = simulate(places, Plan::adversarial(seed), move || async move {
                    let options = Options { queue: 1 + seed as usize % 3, ..Options::default() };
                    let pipeline = Mixed { has_states, ..REPLICATED };
                    let report = resized(pipeline, options, 60, 5, seed).await?;
                    assert_eq!(report.items, 60);
                    Ok::<_, Error>(())
                });
                result.unwrap_or_else(|error| panic!("{places} places, seed {seed}: {error}"));
            }
        }
    }
}

#[test]
fn replicas_take_turns_at_the_places_that_the_groups_say() {
    let (result, ..) = simulate(8, Plan::adversarial(4), || async {
        let replicas = |replicas: Vec<usize>| Partition::of_ends(vec![1, 5, 6, 18]).with_replicas(replicas);
        let costs = StageCosts::new(vec![1; 18]);
        let body = async |flow: RunningPipeline<Mixed>| {
            let wanted = expected(&REPLICATED, 40);
            let changes = [vec![3, 1, 3, 1], vec![1, 1, 2, 1], vec![2, 1, 1, 1], vec![1, 1, 3, 1]];
            for (change, replicas_of_groups) in changes.into_iter().enumerate() {
                flow.resize_to(replicas(replicas_of_groups)).await?;
                for item in 10 * change as u64..10 * (change as u64 + 1) {
                    flow.send(item).await?;
                }
                for result in &wanted[10 * change..10 * (change + 1)] {
                    assert_eq!(flow.recv().await?, Some(*result));
                }
            }
            for refused in [vec![4, 1, 1, 1], vec![1, 1, 1, 2]] {
                let error = flow.resize_to(replicas(refused)).await.unwrap_err();
                assert!(error.to_string().contains("more replicas than its stages allow"), "{error}");
            }
            Ok(())
        };
        let options = Options { costs: Some(costs), cores: Some(2), queue: 10, ..Options::default() };
        let ((), report) = run(REPLICATED, options, body).await?;
        let places = &report.stages[5].places;
        assert_eq!((report.stages.len(), places.len()), (18, 3), "{report:?}");
        assert!(places.iter().all(|place| places.iter().filter(|other| *other == place).count() == 1));
        Ok::<_, Error>(())
    });
    result.unwrap();
}

#[test]
#[should_panic(expected = "stage `memory` has a state, so it cannot be replicated")]
fn a_stage_with_a_state_is_not_replicated() {
    let stages = Stages::<u64, u64>::new().stateful("memory", 0, |_: &mut u64, value| value);
    let _ = stages.replicated(2);
}
