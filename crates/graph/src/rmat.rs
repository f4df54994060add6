//! R-MAT graphs: random graphs with the skewed degrees of real ones.
//!
//! The quadrants are chosen recursively, as by Chakrabarti, Zhan, Faloutsos (SDM 2004): 8·2^n directed edges are
//! drawn, duplicates are dropped and self-loops kept. It does not model any particular network. Invariant: the same
//! parameters and seed give the same graph on every machine.

use super::{Graph, GraphError};

/// Edges drawn for each vertex, before duplicates are dropped.
const EDGES_A_VERTEX: u64 = 8;

/// Largest exponent: 2^24 vertices, 2^27 edges drawn, about 2.5 GB while the graph is built.
pub const SCALE_MAX: u32 = 24;

/// The workloads of X10 on the SCC under the names in its table 1 (Chapman, Hussein, Hosking, X10'11): three of the
/// chip and two of a cluster; the cluster's `low` equals the chip's `large`.
pub const WORKLOADS: [(&str, Rmat); 5] = [
    ("rmat-small", Rmat { scale: 11, a: 0.2, b: 0.15, c: 0.25, d: 0.4, seed: 1 }),
    ("rmat-medium", Rmat { scale: 14, a: 0.65, b: 0.1, c: 0.1, d: 0.15, seed: 1 }),
    ("rmat-large", LOW),
    ("rmat-low", LOW),
    ("rmat-high", Rmat { scale: 15, a: 0.55, b: 0.1, c: 0.1, d: 0.25, seed: 1 }),
];

const LOW: Rmat = Rmat { scale: 14, a: 0.55, b: 0.1, c: 0.1, d: 0.25, seed: 1 };

/// Former names of the workloads, with their current names.
const FORMER_NAMES: [(&str, &str); 4] = [
    ("rmat-11", "rmat-small"),
    ("rmat-14-steep", "rmat-medium"),
    ("rmat-14", "rmat-large"),
    ("rmat-15", "rmat-high"),
];

/// Allowed forms of a graph to generate.
pub const ALLOWED: &str =
    "`rmat:n,a,b,c,d` or `rmat:n,a,b,c,d,seed`, n from 1 to 24, a, b, c and d at least 0 with sum 1";

/// Parameters of one R-MAT graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rmat {
    /// Base-2 logarithm of the number of vertices, 1 to [`SCALE_MAX`].
    pub scale: u32,
    /// Probability of the quadrant low source, low target.
    pub a: f64,
    /// Probability of low source, high target.
    pub b: f64,
    /// Probability of high source, low target.
    pub c: f64,
    /// Probability of high source, high target.
    pub d: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Rmat {
    /// Returns the parameters in `text`; `None` if it does not name an R-MAT graph.
    ///
    /// # Errors
    /// [`GraphError::BadParameter`] if it names one, but with invalid parameters.
    pub fn parse(text: &str) -> Option<Result<Rmat, GraphError>> {
        if let Some((_, rmat)) = WORKLOADS.iter().find(|(name, _)| *name == text) {
            return Some(Ok(*rmat));
        }
        if let Some((_, allowed)) = FORMER_NAMES.iter().find(|(former, _)| *former == text) {
            return Some(Err(GraphError::BadParameter { found: text.to_string(), allowed }));
        }
        let parameters = text.strip_prefix("rmat:")?;
        let bad = || GraphError::BadParameter { found: text.to_string(), allowed: ALLOWED };
        Some(numbers(parameters).filter(Rmat::is_valid).ok_or_else(bad))
    }

    fn is_valid(&self) -> bool {
        let shares = [self.a, self.b, self.c, self.d];
        (1..=SCALE_MAX).contains(&self.scale)
            && shares.iter().all(|share| *share >= 0.0)
            && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9
    }

    /// Draws the graph: directed, unweighted, `2^scale` vertices.
    ///
    /// # Errors
    /// [`GraphError::BadParameter`].
    pub fn generate(&self) -> Result<Graph, GraphError> {
        if !self.is_valid() {
            let Rmat { scale, a, b, c, d, seed } = self;
            let found = format!("rmat:{scale},{a},{b},{c},{d},{seed}");
            return Err(GraphError::BadParameter { found, allowed: ALLOWED });
        }
        let vertices = 1u64 << self.scale;
        let mut random = SplitMix(self.seed);
        let ends: Vec<_> = (0..EDGES_A_VERTEX * vertices).map(|_| self.draw(&mut random)).collect();
        Graph::from_edges(vertices, true, &ends, None)
    }

    /// Draws one edge: at each level the quadrant determines one more bit of source and target.
    fn draw(&self, random: &mut SplitMix) -> (u32, u32) {
        let (mut from, mut to) = (0, 0);
        for _ in 0..self.scale {
            let share = random.next_share();
            let low_source = share < self.a + self.b;
            let high_target = if low_source { share >= self.a } else { share >= self.a + self.b + self.c };
            from = from << 1 | u32::from(!low_source);
            to = to << 1 | u32::from(high_target);
        }
        (from, to)
    }
}

fn numbers(parameters: &str) -> Option<Rmat> {
    let words: Vec<&str> = parameters.split(',').map(str::trim).collect();
    let (&[scale, a, b, c, d], seed) = words.split_first_chunk::<5>()?;
    let seed = match seed {
        [] => 1,
        [seed] => seed.parse().ok()?,
        _ => return None,
    };
    let share = |word: &str| word.parse::<f64>().ok();
    Some(Rmat { scale: scale.parse().ok()?, a: share(a)?, b: share(b)?, c: share(c)?, d: share(d)?, seed })
}

/// The generator SplitMix64, with the constants of Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators" (OOPSLA 2014).
struct SplitMix(u64);

impl SplitMix {
    /// Returns a uniform number in `[0, 1)`, with 53 random bits.
    fn next_share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }
}
