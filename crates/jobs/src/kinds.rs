//! The built-in kinds of jobs of `isles serve`: those of the evaluation of ManyMan.

use crate::job::{Job, JobKind, JobOutput, JobProgress, from_bytes, to_bytes};
use isles::{Cycles, Random, work};
use serde::{Deserialize, Serialize};

/// All built-in kinds.
pub const KINDS: &[JobKind] =
    &[JobKind::of::<PiJob>(), JobKind::of::<SumJob>(), JobKind::of::<MemoryJob>(), JobKind::of::<CountJob>()];

/// Cycles of a floating-point operation in the estimate of pi: 48 cores at 800 MHz made 2,232,382,092 of them in a
/// second (004:1723 of the paper's text).
const FLOP_CYCLES: f64 = 48.0 * 800e6 / 2_232_382_092.0;

/// Floating-point operations of one term of the series.
const TERM_FLOPS: u64 = 4;

/// Number of terms, or of random numbers, in a step.
const STEP: u64 = 50_000;

/// Reads the only word of a job, a number.
fn number(name: &str, words: &[String], default: u64, max: u64) -> Result<u64, String> {
    match words {
        [] => Ok(default),
        [word] => word
            .parse()
            .ok()
            .filter(|number| (1..=max).contains(number))
            .ok_or_else(|| format!("the number of {name} is {word:?}; allowed: 1 to {max}")),
        [_, second, ..] => Err(format!("{name} takes one word, not {second:?} as well")),
    }
}

/// An estimate of pi by a series.
#[derive(Serialize, Deserialize)]
struct PiJob {
    terms: u64,
    done: u64,
    sum: f64,
}

impl Job for PiJob {
    const NAME: &'static str = "pi";
    const WORDS: &'static str = "[TERMS]";

    fn create(words: &[String]) -> Result<PiJob, String> {
        Ok(PiJob { terms: number("terms", words, 1_000_000_000, 1 << 50)?, done: 0, sum: 0.0 })
    }

    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String> {
        let end = self.terms.min(self.done + STEP);
        for term in self.done..end {
            let sign = if term.is_multiple_of(2) { 4.0 } else { -4.0 };
            self.sum += sign / (2 * term + 1) as f64;
        }
        work(Cycles((FLOP_CYCLES * (TERM_FLOPS * (end - self.done)) as f64) as u64));
        let tenth = self.terms.div_ceil(10);
        if end / tenth > self.done / tenth {
            output.line(format!("{end} terms: {}", self.sum));
        }
        self.done = end;
        Ok(if end == self.terms {
            JobProgress::Done(format!("pi is about {}", self.sum))
        } else {
            JobProgress::More
        })
    }

    fn save(&self) -> Vec<u8> {
        to_bytes(self)
    }

    fn restore(bytes: &[u8]) -> Result<PiJob, String> {
        from_bytes(bytes)
    }
}

/// The sum of random numbers, which the paper timed with and without checkpoint support.
#[derive(Serialize, Deserialize)]
struct SumJob {
    numbers: u64,
    done: u64,
    sum: f64,
}

impl Job for SumJob {
    const NAME: &'static str = "sum";
    const WORDS: &'static str = "[NUMBERS]";

    fn create(words: &[String]) -> Result<SumJob, String> {
        Ok(SumJob { numbers: number("numbers", words, 100_000_000, 1 << 50)?, done: 0, sum: 0.0 })
    }

    fn step(&mut self, _output: &mut JobOutput) -> Result<JobProgress, String> {
        let end = self.numbers.min(self.done + STEP);
        // A stream for each step, so that a state of three numbers is enough.
        let mut random = Random::stream(1, self.done / STEP);
        self.sum += (self.done..end).map(|_| random.unit()).sum::<f64>();
        work(Cycles(40 * (end - self.done)));
        self.done = end;
        let is_over = end == self.numbers;
        Ok(if is_over { JobProgress::Done(format!("the sum is {}", self.sum)) } else { JobProgress::More })
    }

    fn save(&self) -> Vec<u8> {
        to_bytes(self)
    }

    fn restore(bytes: &[u8]) -> Result<SumJob, String> {
        from_bytes(bytes)
    }
}

/// Megabytes that are filled with random numbers and then added up, as the paper measured checkpoints.
struct MemoryJob {
    filled: Vec<u64>,
    len: u64,
    added: u64,
    sum: u64,
}

impl Job for MemoryJob {
    const NAME: &'static str = "memory";
    const WORDS: &'static str = "[MEGABYTES]";

    fn create(words: &[String]) -> Result<MemoryJob, String> {
        let megabytes = number("megabytes", words, 16, 1024)?;
        Ok(MemoryJob { filled: Vec::new(), len: megabytes << 17, added: 0, sum: 0 })
    }

    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String> {
        let done = self.filled.len() as u64;
        if done < self.len {
            let end = self.len.min(done + STEP);
            let mut random = Random::stream(2, done / STEP);
            self.filled.extend((done..end).map(|_| random.bits()));
            if end == self.len {
                output.line(format!("filled {} MB", self.len >> 17));
            }
            work(Cycles(20 * (end - done)));
            return Ok(JobProgress::More);
        }
        let end = self.len.min(self.added + STEP);
        let part = &self.filled[self.added as usize..end as usize];
        self.sum = part.iter().fold(self.sum, |sum, number| sum.wrapping_add(*number));
        work(Cycles(4 * (end - self.added)));
        self.added = end;
        let is_over = end == self.len;
        Ok(if is_over {
            JobProgress::Done(format!("the sum is {:016x}", self.sum))
        } else {
            JobProgress::More
        })
    }

    fn memory(&self) -> u64 {
        8 * self.filled.capacity() as u64
    }

    // The numbers in their memory layout: encoding each number would take longer than writing them.
    fn save(&self) -> Vec<u8> {
        let head = [self.len, self.added, self.sum];
        head.iter().chain(&self.filled).flat_map(|number| number.to_le_bytes()).collect()
    }

    fn restore(bytes: &[u8]) -> Result<MemoryJob, String> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let head = (numbers.next(), numbers.next(), numbers.next());
        let (Some(len), Some(added), Some(sum)) = head else { return Err("it is too short".to_owned()) };
        let filled: Vec<u64> = numbers.collect();
        if !rest.is_empty() || filled.len() as u64 > len || added > filled.len() as u64 {
            return Err("its lengths contradict each other".to_owned());
        }
        Ok(MemoryJob { filled, len, added, sum })
    }
}

/// A counter that writes a line for each number.
#[derive(Serialize, Deserialize)]
struct CountJob {
    to: u64,
    at: u64,
}

impl Job for CountJob {
    const NAME: &'static str = "count";
    const WORDS: &'static str = "[TO]";

    fn create(words: &[String]) -> Result<CountJob, String> {
        Ok(CountJob { to: number("numbers", words, 1000, 1 << 40)?, at: 0 })
    }

    fn step(&mut self, output: &mut JobOutput) -> Result<JobProgress, String> {
        self.at += 1;
        output.line(self.at.to_string());
        work(Cycles(100_000));
        Ok(if self.at == self.to {
            JobProgress::Done(format!("counted to {}", self.to))
        } else {
            JobProgress::More
        })
    }

    fn save(&self) -> Vec<u8> {
        to_bytes(self)
    }

    fn restore(bytes: &[u8]) -> Result<CountJob, String> {
        from_bytes(bytes)
    }
}
