//! The shape of a virtual torus, and the coordinates of its nodes.

use super::router::RouteFault;
use serde::{Deserialize, Serialize};

/// The extents of a virtual torus, the first dimension varying fastest; the network need not have this shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Torus(Vec<u32>);

/// Largest number of dimensions: 2^15 places have no more that are longer than one.
const DIMENSIONS_MAX: usize = 15;

impl Torus {
    /// Makes the torus with these extents.
    ///
    /// # Errors
    /// [`RouteFault::Shape`]: there is no dimension, or more than 15; one is zero; there are 2^32 nodes or more.
    pub fn new(extents: &[u32]) -> Result<Torus, RouteFault> {
        let nodes = extents.iter().try_fold(1_u32, |nodes, extent| nodes.checked_mul(*extent));
        let is_shape = (1..=DIMENSIONS_MAX).contains(&extents.len()) && nodes.is_some_and(|nodes| nodes > 0);
        if is_shape { Ok(Torus(extents.to_vec())) } else { Err(RouteFault::Shape(extents.to_vec())) }
    }

    /// Makes the torus of `dimensions` dimensions for `nodes` nodes whose extents differ least, the longest first.
    ///
    /// A prime number of nodes gets one dimension longer than one.
    pub fn of_nodes(nodes: u32, dimensions: usize) -> Torus {
        let (mut extents, mut left) = (Vec::new(), nodes.max(1));
        for remaining in (1..=dimensions.clamp(1, DIMENSIONS_MAX)).rev() {
            let even = f64::from(left).powf(1.0 / remaining as f64).round().max(1.0) as u32;
            // The last dimension takes the rest; the others the next divisor at or above an even share.
            let extent = (even..=left).find(|extent| left.is_multiple_of(*extent)).unwrap_or(left);
            let extent = if remaining == 1 { left } else { extent };
            extents.push(extent);
            left /= extent;
        }
        extents.sort_unstable_by(|a, b| b.cmp(a));
        Torus(extents)
    }

    /// Returns the extents, the first dimension first.
    pub fn extents(&self) -> &[u32] {
        &self.0
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> u32 {
        self.0.iter().product()
    }

    /// Returns the first dimension from `from` on in which two nodes differ, with the coordinate of `to` there.
    pub(super) fn first_difference(&self, here: u32, to: u32, from: usize) -> Option<(usize, u32)> {
        let (mut here, mut to) = (here, to);
        for (dimension, extent) in self.0.iter().enumerate() {
            let (ours, theirs) = (here % extent, to % extent);
            if dimension >= from && ours != theirs {
                return Some((dimension, theirs));
            }
            here /= extent;
            to /= extent;
        }
        None
    }

    /// Returns the node that has `coordinate` in `dimension` and agrees with `node` in all others.
    pub(super) fn with_coordinate(&self, node: u32, dimension: usize, coordinate: u32) -> u32 {
        let stride: u32 = self.0[..dimension].iter().product();
        let ours = node / stride % self.0[dimension];
        node - ours * stride + coordinate * stride
    }
}

impl std::fmt::Display for Torus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, extent) in self.0.iter().enumerate() {
            write!(f, "{}{extent}", if index > 0 { "x" } else { "" })?;
        }
        Ok(())
    }
}

impl std::str::FromStr for Torus {
    type Err = RouteFault;

    /// Reads a shape such as `4x4x4`.
    fn from_str(text: &str) -> Result<Torus, RouteFault> {
        let extents: Result<Vec<u32>, _> = text.split('x').map(str::parse).collect();
        Torus::new(&extents.map_err(|_| RouteFault::Text(text.into()))?)
    }
}
