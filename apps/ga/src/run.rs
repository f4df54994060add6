//! The application `ga`: the run over all places, its end, and its output.
//!
//! Islands are tasks; those of one place take turns by generations. They synchronise every few generations: a reduction
//! determines whether any has found the text, and if none has, migrants are exchanged. So all end at the same exchange,
//! independent of their speed. An island that has found the text stops computing. Invariant: the result depends on the
//! evolution only.

use super::evolution::{Evolution, EvolutionArguments};
use super::island::{Island, IslandRecord};
use super::links::Links;
use super::sequential;
use clap::Args;
use isles::prelude::*;
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, RunMeter, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Instant;

/// The arguments of `isles run ga`.
#[derive(Args, Clone, Debug)]
pub struct GeneticAlgorithm {
    #[command(flatten)]
    evolution: EvolutionArguments,
}

/// Result of an evolution.
#[derive(Serialize)]
pub struct GaFound {
    /// Generations until the text was found, or the allowed maximum.
    generations: u32,
    /// True if the text was found.
    is_found: bool,
    /// The best individual, its fitness, and the island and generation that first had it.
    best: String,
    fitness: u32,
    island: u32,
    generation: u32,
    /// The best fitness of each generation, from generation 0.
    history: Vec<u32>,
    #[serde(skip)]
    evolution: Evolution,
}

impl GaFound {
    /// Returns the generations until the text was found, or the allowed maximum.
    pub fn generations(&self) -> u32 {
        self.generations
    }

    /// Returns `true` if the text was found.
    pub fn is_found(&self) -> bool {
        self.is_found
    }

    /// Returns the best fitness, and the island that first had it.
    #[cfg(test)]
    pub(super) fn best(&self) -> (u32, u32) {
        (self.fitness, self.island)
    }

    /// Returns the best fitness of each generation.
    #[cfg(test)]
    pub(super) fn history(&self) -> &[u32] {
        &self.history
    }

    pub(super) fn new(record: IslandRecord, evolution: Evolution) -> GaFound {
        let IslandRecord { best, history } = record.until_found();
        GaFound {
            generations: history.len() as u32 - 1,
            is_found: best.individual.fitness == 0,
            best: best.individual.text(),
            fitness: best.individual.fitness,
            island: best.island,
            generation: best.generation,
            history,
            evolution,
        }
    }

    /// Returns `true` if the result equals the record of the islands computed without places and channels.
    fn equals_record(&self, record: IslandRecord) -> bool {
        let IslandRecord { best, history } = record.until_found();
        history == self.history
            && best.individual.text() == self.best
            && (best.island, best.generation) == (self.island, self.generation)
    }
}

impl Application for GeneticAlgorithm {
    const INFO: ApplicationInfo = ApplicationInfo {
        note: "With the same --islands and --random-seed the answer is the same at any number of places.",
        ..ApplicationInfo::new("ga", env!("CARGO_PKG_DESCRIPTION"), "generations")
    };
    type Input = Evolution;
    type Found = GaFound;

    fn open(&self, places: u32) -> Result<Evolution, Failure> {
        Evolution::new(&self.evolution, places).map_err(|error| Failure::Usage(error.to_string()))
    }

    fn heading(&self, evolution: &Evolution) -> String {
        let individuals = count(u64::from(evolution.population), "individual", "individuals");
        let islands = count(u64::from(evolution.islands), "island", "islands");
        format!("{individuals} on {islands} look for {} characters", evolution.text.len())
    }

    async fn compute(
        evolution: Evolution,
        distributor: WorkDistributor,
    ) -> isles::Result<(GaFound, WorkDone)> {
        let all_generations = u64::from(evolution.islands) * u64::from(evolution.generations_max);
        let meter = distributor.meter(Some(all_generations)).await?;
        let records = PlaceLocal::new(|| None::<IslandRecord>).await?;
        let started = now();
        let island_places = island_places(evolution.islands);
        let links = Links::connect(&island_places).await?;
        finish(async {
            for ((number, home), links) in (0..evolution.islands).zip(island_places).zip(links) {
                spawn_at!(home, {
                    let record = evolve(Island::new(&evolution, number), &evolution, &links, &meter).await?;
                    merge(&mut records.lock(), record);
                });
            }
        })
        .await?;
        let done = meter.done(started).await?;
        let record = records.reduce(|mut one, other| {
            other.into_iter().for_each(|other| merge(&mut one, other));
            one
        });
        let record = record.await?.expect("there is at least one island, and all have ended");
        Ok((GaFound::new(record, evolution), done))
    }
}

impl RunResult for GeneticAlgorithm {
    fn text(&self, found: &GaFound) -> String {
        let GaFound { generations, best, fitness, island, generation, .. } = found;
        format!(
            "generations  {generations}\nbest         {best}\nfitness      {fitness}\nisland       {island}, in generation {generation}"
        )
    }

    fn speed(&self, found: &GaFound, seconds: f64) -> String {
        let individuals = f64::from(found.generations) * f64::from(found.evolution.population);
        format!("{:.0} individuals a second", individuals / seconds)
    }

    fn verify(&self, found: &GaFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let GaFound { evolution, best, fitness, .. } = found;
        let is_fitness = evolution.fitness(best.as_bytes()) == *fitness && best.len() == evolution.text.len();
        let is_end = match found.is_found {
            true => best.as_str() == evolution.text,
            false => found.generations == evolution.generations_max,
        };
        let mut text = match found.is_found {
            true => "the text was found".to_owned(),
            false => format!("the best of {} generations has fitness {fitness}", found.generations),
        };
        let mut holds = is_fitness && is_end;
        if is_thorough {
            holds &= sequential::record(evolution).is_some_and(|record| found.equals_record(record));
            text += "; compared with the same islands one after the other, without channels";
        }
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &GaFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "generation,fitness")?;
        found.history.iter().enumerate().try_for_each(|(number, best)| writeln!(out, "{number},{best}"))
    }
}

/// Returns the places of the islands: assigned in order, so that neighbours share a place if there are more islands
/// than places.
fn island_places(islands: u32) -> Vec<Place> {
    let places: Vec<Place> = places().collect();
    let used = places.len().min(islands as usize);
    (0..islands as usize).map(|number| places[number * used / islands as usize]).collect()
}

/// Adds the record of an island.
fn merge(records: &mut Option<IslandRecord>, record: IslandRecord) {
    *records = Some(match records.take() {
        Some(other) => other.merge(record),
        None => record,
    });
}

/// Evolves an island to the end.
async fn evolve(
    mut island: Island,
    evolution: &Evolution,
    links: &Links,
    meter: &RunMeter,
) -> isles::Result<IslandRecord> {
    loop {
        let exchange = evolution.next_exchange(island.generation());
        while island.generation() < exchange && !island.has_found() {
            let started = Instant::now();
            island.advance();
            meter.add_done(started);
            work(island.work_of_generation());
            isles::yield_now().await; // the other islands of this place, and the news of a death, have waited
        }
        // The last exchange needs no reduction: all islands know that it is the end.
        if exchange == evolution.generations_max || links.any_found(island.has_found()).await? {
            return Ok(island.record());
        }
        let [left, right] = links.exchange(island.emigrants()).await?;
        island.immigrate(left.into_iter().chain(right));
    }
}
