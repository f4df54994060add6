//! Evolutions: their checked arguments, and individuals with their fitness.
//!
//! The task and its figures (a C program of 71 characters, the sum of squared differences, 1,280 individuals, two
//! migrants every ten generations along a line) are those of A. Prell and T. Rauber, "Go's Concurrency Constructs on
//! the SCC", 6th MARC symposium (2012), paper 1; [`HELLO`] is their text. The tournament size, the mutation rate, the
//! survival of the best individual, and sending two migrants to each neighbour are our choices. Invariant: each island
//! of an evolution has more individuals than can immigrate at once.

use clap::{Args, value_parser};
use isles::Random;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The default text: a C program of 71 characters.
pub const HELLO: &str = r#"#include <stdio.h> int main(void) { printf("Hello SCC!\n"); return 0; }"#;

/// The characters of a text: printable ASCII.
pub const CHARACTERS: std::ops::RangeInclusive<u8> = 32..=126;

/// Most islands: each is a task with four channels.
const ISLANDS_MAX: u32 = 4096;

/// Longest text. It and the next limit keep an island in memory and a fitness in 32 bits.
const TEXT_MAX: usize = 1000;
const POPULATION_MAX: u32 = 1_000_000;

/// Maximum number of generations; an island keeps a number for each.
const GENERATIONS_MAX: u32 = 1_000_000;

/// Defaults of the arguments.
const PUBLISHED: Evolution = Evolution::published(1);

/// The arguments of `isles run ga`.
#[derive(Args, Clone, Debug)]
pub struct EvolutionArguments {
    /// Number of islands, 1 to 4096 [default: as many as places]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(ISLANDS_MAX)))]
    islands: Option<u32>,

    /// Number of individuals of all islands together, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.population,
          value_parser = value_parser!(u32).range(1..=i64::from(POPULATION_MAX)))]
    population: u32,

    /// Most generations, 1 to 1000000; the run ends earlier if the text is found
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.generations_max,
          value_parser = value_parser!(u32).range(1..=i64::from(GENERATIONS_MAX)))]
    generations_max: u32,

    /// The seed of the random numbers; an island has a stream of its own
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.random_seed)]
    random_seed: u64,

    /// Text to search for: 2 to 1000 printable ASCII characters [default: a C program of 71]
    #[arg(long, value_name = "TEXT", value_parser = text)]
    text: Option<String>,

    /// Size of a tournament, whose best individual becomes a parent, 1 to 100
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.tournament,
          value_parser = value_parser!(u32).range(1..=100))]
    tournament: u32,

    /// Mutation rate: children of 100 that have one character replaced
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.mutation,
          value_parser = value_parser!(u64).range(0..=100))]
    mutation: u64,

    /// Number of individuals an island sends to each neighbour at a time, 0 to 100
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.migrants,
          value_parser = value_parser!(u32).range(0..=100))]
    migrants: u32,

    /// Generations between two exchanges of migrants, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = PUBLISHED.migration_interval,
          value_parser = value_parser!(u32).range(1..=i64::from(GENERATIONS_MAX)))]
    migration_interval: u32,
}

/// Parses the text to search for.
fn text(text: &str) -> Result<String, String> {
    let is_sound =
        text.bytes().all(|byte| CHARACTERS.contains(&byte)) && (2..=TEXT_MAX).contains(&text.len());
    let refused = || format!("2 to {TEXT_MAX} ASCII characters, each from blank to ~");
    is_sound.then(|| text.to_owned()).ok_or_else(refused)
}

/// The rules of one evolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evolution {
    /// Number of islands.
    pub islands: u32,
    /// Individuals of all islands.
    pub population: u32,
    /// Most generations.
    pub generations_max: u32,
    /// The seed of the random numbers.
    pub random_seed: u64,
    /// Text to search for.
    pub text: Cow<'static, str>,
    /// Individuals of a tournament.
    pub tournament: u32,
    /// Children of 100 that have one character replaced.
    pub mutation: u64,
    /// Individuals that an island sends to each neighbour at a time.
    pub migrants: u32,
    /// Generations between two exchanges.
    pub migration_interval: u32,
}

/// There are too few individuals for the islands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FewIndividuals {
    population: u32,
    islands: u32,
    /// The smallest allowed population.
    least: u64,
}

impl fmt::Display for FewIndividuals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FewIndividuals { population, islands, least } = self;
        let islands = isles_app::frame::count(u64::from(*islands), "island", "islands");
        write!(
            f,
            "--population is {population}; allowed: at least {least}, for {islands} and their \
             migrants"
        )
    }
}

impl Evolution {
    /// Returns the published evolution on `islands` islands; rules not given in our sources are our choices.
    pub const fn published(islands: u32) -> Evolution {
        Evolution {
            islands,
            population: 1280,
            generations_max: 10_000,
            random_seed: 1,
            text: Cow::Borrowed(HELLO),
            tournament: 3,
            mutation: 50,
            migrants: 2,
            migration_interval: 10,
        }
    }

    /// Creates the evolution of these arguments; by default with an island for each of `places` places.
    ///
    /// # Errors
    /// An island would have no individual other than those that can immigrate at once.
    pub fn new(arguments: &EvolutionArguments, places: u32) -> Result<Evolution, FewIndividuals> {
        let EvolutionArguments { population, generations_max, random_seed, tournament, .. } = *arguments;
        let evolution = Evolution {
            islands: arguments.islands.unwrap_or(places),
            population,
            generations_max,
            random_seed,
            text: arguments.text.clone().map_or(Cow::Borrowed(HELLO), Cow::Owned),
            tournament,
            mutation: arguments.mutation,
            migrants: arguments.migrants,
            migration_interval: arguments.migration_interval,
        };
        let islands = evolution.islands;
        let neighbours = u64::from((islands - 1).min(2));
        let least = u64::from(islands) * (1 + neighbours * u64::from(evolution.migrants));
        match u64::from(population) < least {
            true => Err(FewIndividuals { population, islands, least }),
            false => Ok(evolution),
        }
    }

    /// Returns the number of individuals of island `number`.
    pub fn size_of(&self, number: u32) -> usize {
        let bound = |number: u32| u64::from(number) * u64::from(self.population) / u64::from(self.islands);
        (bound(number + 1) - bound(number)) as usize
    }

    /// Returns the generation after which the islands next synchronise: for an exchange of migrants, or the end.
    pub fn next_exchange(&self, generation: u32) -> u32 {
        let next = (generation / self.migration_interval + 1).saturating_mul(self.migration_interval);
        next.min(self.generations_max)
    }

    /// Returns the sum of the squared differences between characters of `genes` and of the text.
    pub fn fitness(&self, genes: &[u8]) -> u32 {
        let squared = |(one, other): (&u8, u8)| u32::from(one.abs_diff(other)).pow(2);
        genes.iter().zip(self.text.bytes()).map(squared).sum()
    }

    /// Returns an individual with these genes.
    pub fn individual(&self, genes: Vec<u8>) -> Individual {
        Individual { fitness: self.fitness(&genes), genes }
    }

    /// Returns an individual with random genes.
    pub fn random_individual(&self, random: &mut Random) -> Individual {
        self.individual((0..self.text.len()).map(|_| random_character(random)).collect())
    }
}

/// Draws a character of a text, each equally likely.
pub fn random_character(random: &mut Random) -> u8 {
    let (first, last) = (u64::from(*CHARACTERS.start()), u64::from(*CHARACTERS.end()));
    random.within(&(first..=last)) as u8
}

/// One candidate solution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Individual {
    /// Distance from the text; 0 is the text itself.
    pub fitness: u32,
    /// Its characters.
    pub genes: Vec<u8>,
}

impl Individual {
    /// Returns its characters as a text.
    pub fn text(&self) -> String {
        self.genes.iter().copied().map(char::from).collect()
    }
}
