//! The application `nqueens`: the number of placements of n queens on an n by n board so that none attacks another.
//!
//! A task places one queen in the next row, which creates an unpredictable number of tasks. `board` makes positions a
//! bag of `isles::glb`; this module has the arguments, the run, and the known counts (OEIS A000170). Invariant: a count
//! does not depend on the distribution.

#![forbid(unsafe_code)]

mod board;

pub use board::{QueensBag, QueensCount, sequential};

use clap::{Args, value_parser};
use isles::glb::{self, Balanced, Parameters};
use isles_app::Failure;
use isles_app::frame::{
    Application, ApplicationInfo, BalanceArguments, RunResult, Verification, WorkDistributor, WorkDone, count,
};
use serde::Serialize;
use std::io::{self, Write};

/// Solutions by the number of queens, from 1 to 20: OEIS A000170.
const KNOWN: [u64; 20] = [
    1,
    0,
    0,
    2,
    10,
    4,
    40,
    92,
    352,
    724,
    2_680,
    14_200,
    73_712,
    365_596,
    2_279_184,
    14_772_512,
    95_815_104,
    666_090_624,
    4_968_057_848,
    39_029_188_884,
];

/// The arguments of `isles run nqueens`.
#[derive(Args, Clone, Debug)]
pub struct Queens {
    /// Number of queens, 1 to 20; --places sets the number of places
    #[arg(long = "n", alias = "queens", value_name = "N", default_value = "12",
          value_parser = value_parser!(u32).range(1..=KNOWN.len() as i64))]
    queens: u32,

    #[command(flatten)]
    balance: BalanceArguments,
}

/// Number of queens, and the balancing of the run.
#[derive(Serialize)]
pub struct QueensInput {
    queens: u32,
    balance: Parameters,
}

/// Result of a run.
#[derive(Serialize)]
pub struct QueensFound {
    /// Ways to place all queens.
    solutions: u64,
    /// Queens placed during the search.
    placed: u64,
}

impl Application for Queens {
    const INFO: ApplicationInfo = ApplicationInfo::new("nqueens", env!("CARGO_PKG_DESCRIPTION"), "queens");
    type Input = QueensInput;
    type Found = QueensFound;

    fn open(&self, places: u32) -> Result<QueensInput, Failure> {
        Ok(QueensInput { queens: self.queens, balance: self.balance.parameters(places)? })
    }

    fn heading(&self, input: &QueensInput) -> String {
        let queens = u64::from(input.queens);
        format!("{} on a board of {queens} by {queens}", count(queens, "queen", "queens"))
    }

    async fn compute(
        input: QueensInput,
        distributor: WorkDistributor,
    ) -> isles::Result<(QueensFound, WorkDone)> {
        let QueensInput { queens, balance } = input;
        let _steps = distributor.open_steps();
        let Balanced { result, balance } = glb::run_with(balance, QueensBag::new(queens)).await?;
        Ok((QueensFound { solutions: result.solutions, placed: result.placed }, distributor.done_of(balance)))
    }
}

impl RunResult for Queens {
    fn text(&self, QueensFound { solutions, placed }: &QueensFound) -> String {
        format!("solutions  {solutions}\nplaced     {placed} queens")
    }

    fn speed(&self, found: &QueensFound, seconds: f64) -> String {
        format!("{:.2} million queens a second", found.placed as f64 / seconds / 1e6)
    }

    fn verify(&self, found: &QueensFound, is_thorough: bool) -> Result<Option<Verification>, Failure> {
        let known = KNOWN[self.queens as usize - 1];
        let mut holds = found.solutions == known;
        let mut text = format!("{known} solutions are known (OEIS A000170)");
        if is_thorough {
            let alone = sequential(self.queens);
            holds &= (alone.solutions, alone.placed) == (found.solutions, found.placed);
            text += "; compared with a recursion of one processor";
        }
        Ok(Some(Verification { holds, text }))
    }

    fn write_csv(&self, found: &QueensFound, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "queens,solutions,placed\n{},{},{}", self.queens, found.solutions, found.placed)
    }
}

/// The `main` of the program.
pub fn main() -> std::process::ExitCode {
    isles_app::main::<Queens>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isles::Plan;

    #[test]
    fn the_counts_are_the_known_ones() {
        for queens in 1..=10 {
            assert_eq!(sequential(queens).solutions, KNOWN[queens as usize - 1], "{queens} queens");
        }
    }

    #[test]
    fn a_count_over_places_in_any_order_is_that_of_one() {
        for seed in 0..24 {
            let (places, queens) = (1 + seed as u32 % 7, 4 + seed as u32 % 5);
            let (result, ..) = isles::simulate(places, Plan::adversarial(seed), move || async move {
                let parameters = Parameters { batch: Some(15), seed, ..Parameters::default() };
                let Balanced { result, .. } = glb::run_with(parameters, QueensBag::new(queens)).await?;
                assert_eq!(result, sequential(queens));
                Ok::<_, isles::Error>(())
            });
            result.unwrap_or_else(|error| panic!("{queens} queens, {places} places, seed {seed}: {error}"));
        }
    }
}
