//! Placement of labels without overlap of texts and marks.
//!
//! Labels at ends of lines are pushed apart along one axis. Points in the plane try the positions around them, the
//! nearest first. Invariant: placed boxes never overlap; a label that does not fit is left out, and the caller is
//! informed.

use crate::canvas::{Anchor, Spot};

/// An occupied rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Block {
    /// The square around a mark.
    pub(crate) fn around(centre: Spot, radius: f64) -> Block {
        Block {
            left: centre.x - radius,
            top: centre.y - radius,
            right: centre.x + radius,
            bottom: centre.y + radius,
        }
    }

    fn overlaps(&self, other: &Block) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn contains(&self, other: &Block) -> bool {
        self.left <= other.left
            && self.right >= other.right
            && self.top <= other.top
            && self.bottom >= other.bottom
    }
}

/// A position of a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LabelPlace {
    /// The point on the base line that the anchor refers to.
    pub(crate) at: Spot,
    pub(crate) anchor: Anchor,
    /// `true` if it is far enough from its point to need a leader line.
    pub(crate) is_far: bool,
}

/// The occupied rectangles.
#[derive(Clone, Debug)]
pub(crate) struct Labeller {
    room: Block,
    taken: Vec<Block>,
}

/// Distances from a point that are tried; beyond the second, a leader line is drawn.
const DISTANCES: [f64; 6] = [8.0, 12.0, 24.0, 40.0, 58.0, 78.0];

impl Labeller {
    /// Labels may be placed in `room`, outside of `taken`.
    pub(crate) fn new(room: Block, taken: Vec<Block>) -> Labeller {
        Labeller { room, taken }
    }

    /// Finds and occupies a position near a point for a text of that width and font size.
    pub(crate) fn place(&mut self, point: Spot, width: f64, size: f64) -> Option<LabelPlace> {
        // Right, left, above, below, and between them.
        let sides = [
            (1.0, 0.0),
            (-1.0, 0.0),
            (0.0, -1.0),
            (0.0, 1.0),
            (0.7, -0.7),
            (-0.7, -0.7),
            (0.7, 0.7),
            (-0.7, 0.7),
        ];
        for (nearness, distance) in DISTANCES.into_iter().enumerate() {
            for (across, down) in sides {
                let at = Spot { x: point.x + across * distance, y: point.y + down * distance };
                let (anchor, left) = match across {
                    across if across > 0.1 => (Anchor::Start, at.x),
                    across if across < -0.1 => (Anchor::End, at.x - width),
                    _ => (Anchor::Middle, at.x - width / 2.0),
                };
                let middle = at.y + down * size * 0.4;
                let block = Block {
                    left,
                    right: left + width,
                    top: middle - size * 0.6,
                    bottom: middle + size * 0.6,
                };
                if self.room.contains(&block) && !self.taken.iter().any(|other| other.overlaps(&block)) {
                    self.taken.push(block);
                    let at = Spot { x: at.x, y: middle + size * 0.35 };
                    return Some(LabelPlace { at, anchor, is_far: nearness > 1 });
                }
            }
        }
        None
    }
}

/// Moves the positions as little as possible so that neighbours are at least `apart` and all are between `least` and
/// `most`; their order stays. If they do not fit, they are spaced evenly.
pub(crate) fn spread(wanted: &[f64], apart: f64, least: f64, most: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
    let room = (most - least).max(0.0);
    let gaps = wanted.len().saturating_sub(1) as f64;
    let apart = if gaps > 0.0 { apart.min(room / gaps) } else { apart };
    // Clusters of touching positions; each is centred at the mean of the wanted positions.
    let mut clusters: Vec<(f64, Vec<usize>)> = Vec::new();
    let first = |members: &[usize]| {
        let offset = |(number, member): (usize, &usize)| wanted[*member] - apart * number as f64;
        let mean = members.iter().enumerate().map(offset).sum::<f64>() / members.len() as f64;
        mean.clamp(least, (most - apart * (members.len() - 1) as f64).max(least))
    };
    for number in order {
        let mut members = vec![number];
        let mut start = first(&members);
        while let Some((before, others)) = clusters.last() {
            if before + apart * others.len() as f64 <= start {
                break;
            }
            let (_, mut others) = clusters.pop().unwrap_or_default();
            others.append(&mut members);
            members = others;
            start = first(&members);
        }
        clusters.push((start, members));
    }
    let mut placed = vec![0.0; wanted.len()];
    for (start, members) in clusters {
        for (number, member) in members.into_iter().enumerate() {
            placed[member] = start + apart * number as f64;
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Block = Block { left: 0.0, top: 0.0, right: 200.0, bottom: 100.0 };

    #[test]
    fn a_label_stands_at_the_right_or_where_there_is_room() {
        let mut labeller = Labeller::new(ROOM, Vec::new());
        let first = labeller.place(Spot { x: 50.0, y: 50.0 }, 60.0, 12.0).unwrap();
        assert_eq!((first.anchor, first.at.x, first.is_far), (Anchor::Start, 58.0, false));
        let second = labeller.place(Spot { x: 52.0, y: 52.0 }, 30.0, 12.0).unwrap();
        assert_eq!(second.anchor, Anchor::End, "the first is in the way");
        let edge = labeller.place(Spot { x: 190.0, y: 10.0 }, 60.0, 12.0).unwrap();
        assert_eq!(edge.anchor, Anchor::End, "there is no room at the right");
        assert_eq!(labeller.place(Spot { x: 50.0, y: 50.0 }, 300.0, 12.0), None);
    }

    #[test]
    fn labels_never_overlap() {
        let mut labeller = Labeller::new(ROOM, Vec::new());
        let placed = (0..40).filter_map(|_| labeller.place(Spot { x: 100.0, y: 50.0 }, 30.0, 12.0)).count();
        assert_eq!(placed, labeller.taken.len());
        assert!(placed > 4);
        let blocks = &labeller.taken;
        assert!(
            blocks
                .iter()
                .enumerate()
                .all(|(number, one)| !blocks[..number].iter().any(|other| one.overlaps(other)))
        );
    }

    #[test]
    fn positions_are_pushed_apart_and_stay_in_the_room() {
        assert_eq!(spread(&[10.0, 50.0], 15.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[50.0, 50.0], 16.0, 0.0, 100.0), [42.0, 58.0]);
        assert_eq!(spread(&[1.0, 0.0], 16.0, 0.0, 100.0), [16.0, 0.0]);
        assert_eq!(spread(&[99.0, 98.0, 97.0], 10.0, 0.0, 100.0), [100.0, 90.0, 80.0]);
        assert_eq!(spread(&[5.0; 3], 80.0, 0.0, 100.0), [0.0, 50.0, 100.0]);
        assert!(spread(&[], 10.0, 0.0, 1.0).is_empty());
    }
}
