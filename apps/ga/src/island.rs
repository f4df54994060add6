//! One island: its individuals, a generation of them, and the cost of a generation on a core.
//!
//! In each generation, the best individual survives unchanged, and all others are children. Invariant: the same island
//! with the same immigrants has the same individuals, because it has its own random numbers.

use super::evolution::{Evolution, Individual, random_character};
use isles::{Random, Work};
use serde::{Deserialize, Serialize};

/// The best individual of an island, and its first generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Best {
    /// The individual.
    pub individual: Individual,
    /// The generation that had it first.
    pub generation: u32,
    /// The number of the island.
    pub island: u32,
}

impl Best {
    /// Returns the sort key of the best: fitness, then the earlier generation, then the lower island.
    fn order(&self) -> (u32, u32, u32) {
        (self.individual.fitness, self.generation, self.island)
    }
}

/// Record of one or more islands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IslandRecord {
    /// The best of all.
    pub best: Best,
    /// The best fitness of each generation, including the initial one.
    pub history: Vec<u32>,
}

impl IslandRecord {
    /// Merges two records. One that has found the text ends its history there.
    pub fn merge(self, other: IslandRecord) -> IslandRecord {
        let (longer, shorter) = match self.history.len() >= other.history.len() {
            true => (self.history, other.history),
            false => (other.history, self.history),
        };
        let mut history = longer;
        history.iter_mut().zip(shorter).for_each(|(one, other)| *one = other.min(*one));
        let best = if self.best.order() <= other.best.order() { self.best } else { other.best };
        IslandRecord { best, history }
    }

    /// Returns the record up to the generation that found the text, if one did: other islands continued until they
    /// learned of it.
    pub fn until_found(mut self) -> IslandRecord {
        if self.best.individual.fitness == 0 {
            self.history.truncate(self.best.generation as usize + 1);
        }
        self
    }
}

/// One island.
pub struct Island {
    number: u32,
    evolution: Evolution,
    random: Random,
    individuals: Vec<Individual>,
    /// Individuals of the previous generation, whose memory is reused.
    former: Vec<Individual>,
    generation: u32,
    record: IslandRecord,
}

impl Island {
    /// Creates island `number` of an evolution, with random individuals.
    pub fn new(evolution: &Evolution, number: u32) -> Island {
        let mut random = Random::stream(evolution.random_seed, u64::from(number));
        let size = evolution.size_of(number);
        let individuals: Vec<_> = (0..size).map(|_| evolution.random_individual(&mut random)).collect();
        let individual = individuals[fittest(&individuals)].clone();
        let history = vec![individual.fitness];
        let best = Best { individual, generation: 0, island: number };
        Island {
            number,
            evolution: evolution.clone(),
            random,
            former: individuals.clone(),
            individuals,
            generation: 0,
            record: IslandRecord { best, history },
        }
    }

    /// Returns the number of generations so far.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns `true` if the island has found the text.
    pub fn has_found(&self) -> bool {
        self.record.best.individual.fitness == 0
    }

    /// Returns the record of the island.
    pub fn record(self) -> IslandRecord {
        self.record
    }

    /// Returns its individuals, in no particular order.
    #[cfg(test)]
    pub fn individuals(&self) -> &[Individual] {
        &self.individuals
    }

    /// Computes the next generation.
    pub fn advance(&mut self) {
        std::mem::swap(&mut self.individuals, &mut self.former);
        let best = fittest(&self.former);
        for number in 0..self.individuals.len() {
            let mut child = std::mem::take(&mut self.individuals[number].genes);
            if number == 0 {
                child.clone_from(&self.former[best].genes);
            } else {
                let (one, other) = (self.parent(), self.parent());
                cross(&self.former[one].genes, &self.former[other].genes, &mut self.random, &mut child);
                mutate(&mut child, self.evolution.mutation, &mut self.random);
            }
            self.individuals[number] = self.evolution.individual(child);
        }
        self.generation += 1;
        let best = &self.individuals[fittest(&self.individuals)];
        self.record.history.push(best.fitness);
        if best.fitness < self.record.best.individual.fitness {
            self.record.best =
                Best { individual: best.clone(), generation: self.generation, island: self.number };
        }
    }

    /// Returns the index of a parent: the best of a tournament; ties go to the first drawn.
    fn parent(&mut self) -> usize {
        let former = &self.former;
        let drawn = (0..self.evolution.tournament).map(|_| self.random.index(former.len()));
        drawn.min_by_key(|index| former[*index].fitness).unwrap_or_default()
    }

    /// Returns copies of the best individuals for a neighbour.
    pub fn emigrants(&self) -> Vec<Individual> {
        let best = self.ranked().into_iter().take(self.evolution.migrants as usize);
        best.map(|index| self.individuals[index].clone()).collect()
    }

    /// Replaces the worst individuals by immigrants.
    pub fn immigrate(&mut self, immigrants: impl IntoIterator<Item = Individual>) {
        let worst = self.ranked().into_iter().rev();
        for (index, immigrant) in worst.zip(immigrants) {
            self.individuals[index] = immigrant;
        }
    }

    /// Returns the indices of the individuals, best first; ties go to the lower index.
    fn ranked(&self) -> Vec<usize> {
        let mut ranked: Vec<usize> = (0..self.individuals.len()).collect();
        ranked.sort_by_key(|index| self.individuals[*index].fitness);
        ranked
    }

    /// Returns the work of a core for a generation, counted for a P54C: two pipes, no conditional move, 10 cycles for
    /// a multiplication, which cannot be paired.
    ///
    /// - A random number is 120 cycles: the generator's words of 64 bits are pairs of 32; 16 additions and shifts of
    ///   such pairs for its two products, 8 exclusive ors and 2 rotations are 60 cycles; fitting the number to a range
    ///   takes four products of 32 bits and their sums, 60 more.
    /// - A draw of a tournament is a number, an address and a comparison that is often mispredicted: 10 cycles more.
    /// - A child's genes are copied in two pieces, two cycles for four of them and 20 a piece.
    /// - A character of the fitness is two loads of bytes with zeros before them, 3 cycles each, a difference, a
    ///   multiplication, a sum, and 2 cycles of the loop: 20.
    /// - The rest of a child, its calls and its loops, is 50, its comparison in the search for the best one 4.
    ///
    /// Memory: a draw looks up an individual, whose descriptor has 16 bytes; the parents' genes are lines of 32 bytes
    /// anywhere on the island; the child's are written in order.
    pub fn work_of_generation(&self) -> Work {
        const NUMBER: u64 = 120;
        let size = self.individuals.len() as u64;
        let (length, draws) = (self.evolution.text.len() as u64, 2 * u64::from(self.evolution.tournament));
        // A point of crossover, whether to mutate, and for those that do a position and a character.
        let numbers = 100 * (draws + 2) + 2 * self.evolution.mutation;
        let child = numbers * NUMBER / 100 + 10 * draws + 2 * length.div_ceil(4) + 40 + 20 * length + 54;
        Work::new()
            .cycles(size * child)
            .streamed(size * (length + 16))
            .of(size * (length + 16))
            .scattered(size * draws, size * 16)
            .scattered(size * (length.div_ceil(32) + 2), size * length)
    }
}

/// Returns the index of the best individual; ties go to the first.
fn fittest(individuals: &[Individual]) -> usize {
    let best = individuals.iter().enumerate().min_by_key(|(_, individual)| individual.fitness);
    best.map_or(0, |(index, _)| index)
}

/// Writes a child into `child`: the genes of one parent before a random point, those of the other after it.
///
/// The point is inside the genes, so that both parents contribute.
pub fn cross(one: &[u8], other: &[u8], random: &mut Random, child: &mut Vec<u8>) {
    let point = 1 + random.index(one.len() - 1);
    child.clear();
    child.extend_from_slice(&one[..point]);
    child.extend_from_slice(&other[point..]);
}

/// Replaces one random gene by a random character, in `percent` of 100 cases.
pub fn mutate(genes: &mut [u8], percent: u64, random: &mut Random) {
    if random.chance(percent) {
        let index = random.index(genes.len());
        genes[index] = random_character(random);
    }
}
