//! Properties of the operators, evolutions against a second program, and the channels in seeded worlds with delays and
//! a death.

use super::evolution::{CHARACTERS, Evolution, EvolutionArguments, HELLO};
use super::island::{Island, cross, mutate};
use super::run::{GaFound, GeneticAlgorithm};
use super::sequential;
use clap::{Args, FromArgMatches};
use isles::{ErrorKind, Place, Plan, PlannedDeath, Random};
use isles_app::frame::{Application, WorkDistributor};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// Returns the evolution of these arguments on two places.
fn evolution(line: &str) -> Evolution {
    opened(line, 2).expect("an evolution that is allowed")
}

fn opened(line: &str, places: u32) -> Result<Evolution, String> {
    let command = EvolutionArguments::augment_args(clap::Command::new("ga").no_binary_name(true));
    let matches = command.try_get_matches_from(line.split_whitespace()).map_err(|error| error.to_string())?;
    let arguments = EvolutionArguments::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    Evolution::new(&arguments, places).map_err(|error| error.to_string())
}

/// Returns generations, best fitness and its island.
fn outcome(found: &GaFound) -> (u32, u32, u32) {
    let (fitness, island) = found.best();
    (found.generations(), fitness, island)
}

#[test]
fn evolutions_are_those_of_a_second_program() {
    assert_eq!(HELLO.len(), 71);
    // From `apps/ga/tests/ga.py`.
    for (line, expected) in [
        ("--islands 1 --population 300", (660, 0, 0)),
        ("--islands 4 --population 400", (584, 0, 1)),
        ("--islands 5 --population 300 --random-seed 2", (569, 0, 2)),
        ("--islands 24 --population 480 --random-seed 3", (632, 0, 19)),
        ("--islands 4 --population 400 --generations-max 77", (77, 1887, 2)),
    ] {
        let evolution = evolution(line);
        let found = GaFound::new(sequential::record(&evolution).expect("an island"), evolution);
        assert_eq!(outcome(&found), expected, "{line}");
    }
}

#[test]
fn a_world_of_any_order_and_delay_finds_what_islands_without_channels_find() {
    let text = "--text Hello --population 60 --generations-max 200 --mutation 60";
    for (islands, places) in [(1, 3), (2, 2), (5, 3), (7, 7), (9, 2)] {
        let evolution = evolution(&format!("{text} --islands {islands}"));
        let expected = GaFound::new(sequential::record(&evolution).expect("an island"), evolution.clone());
        for seed in 0..20 {
            let evolution = evolution.clone();
            let distributor = WorkDistributor::plain::<GeneticAlgorithm>();
            let (expected, history) = (outcome(&expected), expected.history().to_vec());
            let (result, ..) = isles::simulate(places, Plan::adversarial(seed), move || async move {
                let found = GeneticAlgorithm::compute(evolution, distributor).await?.0;
                assert_eq!((outcome(&found), found.history()), (expected, &history[..]));
                Ok::<_, isles::Error>(())
            });
            result.unwrap_or_else(|error| panic!("{islands} islands, {places} places, seed {seed}: {error}"));
        }
    }
}

#[test]
fn an_island_evolves_within_the_rules() {
    let evolution = evolution("--islands 3 --population 100 --tournament 2 --text abcdefghijklmnop");
    assert_eq!([0, 1, 2].map(|number| evolution.size_of(number)), [33, 33, 34]);
    let mut island = Island::new(&evolution, 1);
    for generation in 1..=40 {
        let best = island.emigrants()[0].fitness;
        island.advance();
        assert_eq!((island.generation(), island.individuals().len()), (generation, 33));
        let sound = |genes: &[u8]| genes.len() == 16 && genes.iter().all(|gene| CHARACTERS.contains(gene));
        for one in island.individuals() {
            assert!(sound(&one.genes) && one.fitness == evolution.fitness(&one.genes));
        }
        let emigrants = island.emigrants();
        assert!(
            emigrants.len() == 2
                && emigrants[0].fitness <= best
                && emigrants[0].fitness <= emigrants[1].fitness
        );
    }
    let mut before: Vec<u32> = island.individuals().iter().map(|one| one.fitness).collect();
    let newcomer = evolution.individual(evolution.text.as_bytes().to_vec());
    island.immigrate([newcomer.clone(), newcomer.clone()]);
    let mut after: Vec<u32> = island.individuals().iter().map(|one| one.fitness).collect();
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(after[..2], [0, 0], "they are there");
    assert_eq!(after[2..], before[..31], "and the two worst are not");
    island.advance();
    assert!(island.has_found());
}

#[test]
fn a_generation_of_a_larger_island_or_text_is_more_work() {
    let work = |line: &str| Island::new(&evolution(line), 0).work_of_generation();
    let one = work("--islands 1 --population 640");
    let two = work("--islands 1 --population 1280");
    assert_eq!((two.cycles, two.streamed_bytes), (2 * one.cycles, 2 * one.streamed_bytes));
    // A child by hand: 6 draws, 1 point and 2.5 numbers of mutation at 120, 60 of draws, 18 double moves and 40, 71
    // characters at 20, and 54.
    assert_eq!(one.cycles, 640 * (9 * 120 + 60 + 36 + 40 + 1420 + 54));
    assert!(work("--islands 1 --text ab").cycles < one.cycles);
}

#[test]
fn what_is_no_evolution_is_refused() {
    for (line, places, expected) in [
        ("--population 3", 4, "--population is 3; allowed: at least 20, for 4 islands and their migrants"),
        ("--population 5 --islands 2", 1, "--population is 5; allowed: at least 6, for 2 islands"),
        (
            "--islands 9 --migrants 0 --population 8",
            1,
            "--population is 8; allowed: at least 9, for 9 islands",
        ),
        ("--text a", 1, "2 to 1000 ASCII characters, each from blank to ~"),
        ("--text é€", 1, "2 to 1000 ASCII characters, each from blank to ~"),
        ("--islands 0", 1, "0 is not in 1..=4096"),
        ("--mutation 101", 1, "101 is not in 0..=100"),
        ("--tournament 0", 1, "0 is not in 1..=100"),
        ("--migration-interval 0", 1, "0 is not in 1..=1000000"),
    ] {
        let refused = opened(line, places).expect_err(line);
        assert!(refused.contains(expected), "{line}: {refused}");
    }
    for (line, islands) in [("--population 20", 4), ("--population 1 --islands 1", 1)] {
        assert_eq!(opened(line, 4).expect("it is just enough").islands, islands);
    }
}

#[test]
fn a_meeting_comes_every_few_generations_and_at_the_end() {
    let evolution = evolution("--generations-max 25");
    assert_eq!([0, 1, 9, 10, 20, 24].map(|at| evolution.next_exchange(at)), [10, 10, 10, 20, 25, 25]);
}

#[test]
fn the_death_of_a_place_ends_the_run_with_an_error_that_names_it() {
    // Only a place knows its own number.
    let victim = Rc::new(Cell::new(None));
    let victim_cell = Rc::clone(&victim);
    let set_victim = move || async move { victim_cell.set(Place::new(2).map(Place::id)) };
    isles::simulate(3, Plan::calm(0), set_victim).0.expect("it only says it");
    let place = victim.get().expect("the last of three places");
    let mut died = 0;
    for seed in 0..40 {
        let evolution = evolution("--islands 6 --population 60 --generations-max 300 --text Hello");
        let distributor = WorkDistributor::plain::<GeneticAlgorithm>();
        let death = PlannedDeath { place, step: 40 * seed };
        let plan = Plan { losses: vec![death], ..Plan::adversarial(seed) };
        let (result, ..) = isles::simulate(4, plan, || async move {
            GeneticAlgorithm::compute(evolution, distributor).await?;
            Ok::<_, isles::Error>(())
        });
        let Err(error) = result else { continue };
        died += 1;
        let is_death = |error: &isles::Error| *error.kind() == ErrorKind::DeadPlace(place);
        assert!(is_death(&error) || error.causes().iter().any(is_death), "seed {seed}: {error}");
    }
    assert!(died > 20, "only {died} runs were longer than their place lived");
}

proptest! {
    #[test]
    fn a_child_has_a_part_of_each_parent(one in vec(0_u8..50, 2..90), seed in any::<u64>()) {
        let other: Vec<u8> = one.iter().map(|gene| gene + 50).collect();
        let mut child = vec![7; 3];
        cross(&one, &other, &mut Random::new(seed), &mut child);
        let point = child.iter().take_while(|gene| **gene < 50).count();
        prop_assert!(point >= 1 && point < one.len());
        prop_assert_eq!(&child[..point], &one[..point]);
        prop_assert_eq!(&child[point..], &other[point..]);
    }

    #[test]
    fn a_mutation_replaces_at_most_one_character_and_none_in_no_case(
        genes in vec(CHARACTERS, 2..90),
        seed in any::<u64>(),
    ) {
        let mutated = |percent| {
            let mut mutated = genes.clone();
            mutate(&mut mutated, percent, &mut Random::new(seed));
            mutated
        };
        let once = mutated(100);
        let differences = once.iter().zip(&genes).filter(|(one, other)| one != other).count();
        prop_assert!(differences <= 1 && once.iter().all(|gene| CHARACTERS.contains(gene)));
        prop_assert_eq!(mutated(0), genes);
    }

    #[test]
    fn a_larger_tournament_makes_no_worse_a_mean(seed in any::<u64>()) {
        let mean = |tournament: u32| {
            let line = format!("--islands 1 --population 400 --mutation 0 --random-seed {seed} --tournament {tournament}");
            let mut island = Island::new(&evolution(&line), 0);
            island.advance();
            island.individuals().iter().map(|one| f64::from(one.fitness)).sum::<f64>() / 400.0
        };
        prop_assert!(mean(50) < mean(1));
    }
}
