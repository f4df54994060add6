//! Random programs in random order over more places than exhaustive exploration can handle.

use super::world::{Action, Mutant, Setting, Step, World};
use crate::tests::run;
use proptest::prelude::*;

/// Returns steps of script `script`: they start only later scripts, so that every program ends.
fn step(places: u32, script: usize, scripts: usize) -> impl Strategy<Value = Step> {
    let later = script + 1..scripts.max(script + 2);
    (0..24_u32, 0..places, later).prop_map(move |(choice, place, next)| match choice {
        _ if next >= scripts => Step::FailToSend(place),
        0..4 => Step::Spawn(next),
        4..13 => Step::Send(place, next),
        13..17 => Step::At(place, next),
        17 => Step::Abandon(place, next),
        18..20 => Step::Finish(next),
        20 => Step::FailToSend(place),
        21..23 => Step::Fail,
        _ => Step::Cancel,
    })
}

fn setting() -> impl Strategy<Value = Setting> {
    (2..6_u32, 2..7_usize).prop_flat_map(|(places, scripts)| {
        let script = move |script| proptest::collection::vec(step(places, script, scripts), 1..4);
        let program: Vec<_> = (0..scripts).map(script).collect();
        let victims = prop_oneof![
            Just(vec![]),
            (0..places).prop_map(|victim| vec![victim]),
            (1..places, 1..places).prop_map(|(one, two)| if one == two { vec![one] } else { vec![one, two] }),
        ];
        let settings = (Just(places), program, victims, 1..4_u32);
        settings.prop_map(|(places, program, victims, prompt_questions)| Setting {
            places,
            program,
            victims,
            mutant: Mutant::None,
            prompt_questions,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_random_program_in_random_order_holds(setting in setting(), seed: u64) {
        let verdict = run(World::new(&setting), seed, |action| matches!(action, Action::Kill(_)));
        prop_assert!(verdict.is_ok(), "{}", verdict.unwrap_err());
    }
}
