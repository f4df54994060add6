//! The layout of arrays against plain arithmetic: owners, positions in parts, grids, and refusals.

use super::layout::{ArrayLayout, Blocks, Divisor};
use super::{ArrayError, Distribution};
use crate::Random;

/// Returns a random distribution of one axis.
fn distribution(random: &mut Random) -> Distribution {
    match random.below(4) {
        0 => Distribution::Whole,
        1 => Distribution::Block,
        2 => Distribution::Cyclic,
        _ => Distribution::BlockCyclic(random.below(7) as usize + 1),
    }
}

#[test]
fn a_division_by_multiplication_is_a_division() {
    let mut random = Random::stream(1, 0);
    let edges = [0, 1, 2, u64::from(u32::MAX), 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
    for round in 0..20_000 {
        let by = match round % 3 {
            0 => random.below(100) + 1,
            1 => random.bits() >> random.below(64) | 1,
            _ => 1 << random.below(64),
        };
        let divisor = Divisor::new(by);
        let near = random.below(1 << 20).wrapping_mul(by);
        let numbers = edges.into_iter().chain([near, near.wrapping_sub(1), random.bits()]);
        for number in numbers {
            assert_eq!(divisor.divide(number), (number / by, number % by), "{number} by {by}");
        }
    }
}

#[test]
fn ranges_of_a_table_follow_on_each_other_and_owners_are_those_of_a_division() {
    for seed in 0..20_000 {
        let mut random = Random::stream(3, seed);
        let parts = random.below(100_000) + 1;
        let size = parts + random.bits() % ((1 << 46) - parts);
        let blocks = Blocks::new(size, parts).unwrap();
        let part = random.below(parts);
        let around = [blocks.first(part), blocks.first(part + 1) - 1, random.bits() % size, 0, size - 1];
        for index in around {
            let owner = blocks.owner(index);
            assert_eq!(owner, (u128::from(index + 1) * u128::from(parts) - 1) as u64 / size, "{blocks:?}");
            assert!(blocks.range(owner).contains(&index), "{index} in {blocks:?}");
        }
        assert_eq!((blocks.first(0), blocks.first(parts)), (0, size));
        assert!((blocks.first(part + 1) - blocks.first(part)).abs_diff(size / parts) <= 1);
    }
    for (size, parts) in [(3, 4), (10, 0), (0, 0), (1 << 63, 4)] {
        assert_eq!(Blocks::new(size, parts), None);
    }
}

#[test]
fn each_index_has_one_owner_and_one_place_there_and_parts_differ_by_at_most_a_block() {
    for seed in 0..600 {
        let mut random = Random::stream(2, seed);
        let extents = [0; 3].map(|_| random.below(40) as usize + 1);
        let distributions = [0; 3].map(|_| distribution(&mut random));
        let members = random.below(24) as usize + 1;
        let Ok(layout) = ArrayLayout::new(extents, distributions, members) else {
            assert!(members > 1 && distributions == [Distribution::Whole; 3]);
            continue;
        };
        for axis in layout.axes {
            let mut seen = vec![false; axis.extent];
            let mut lengths = Vec::new();
            for part in 0..axis.parts {
                let runs = axis.runs(part);
                lengths.push(axis.len(part));
                assert_eq!(runs.iter().map(|run| run.len).sum::<usize>(), axis.len(part));
                assert!(runs.windows(2).all(|two| two[0].global + two[0].len <= two[1].global));
                for (index, local) in
                    runs.iter().flat_map(|run| (0..run.len).map(|k| (run.global + k, run.local + k)))
                {
                    assert!(!std::mem::replace(&mut seen[index], true), "{index} has two owners");
                    assert_eq!(axis.locate(index), (part, local));
                    assert_eq!(axis.global(part, local), index);
                }
            }
            assert!(seen.into_iter().all(|seen| seen), "an index without an owner");
            let most = lengths.iter().max().unwrap() - lengths.iter().min().unwrap();
            let block = distributions
                .iter()
                .map(|one| if let Distribution::BlockCyclic(block) = one { *block } else { 1 });
            assert!(most <= block.max().unwrap(), "{lengths:?}");
        }
        assert_eq!(layout.axes.map(|axis| axis.parts).iter().product::<usize>(), members);
        assert!((0..members).all(|rank| layout.rank_of(layout.parts_of(rank)) == rank));
    }
}

#[test]
fn the_parts_of_a_grid_are_about_as_long_as_wide() {
    use Distribution::{Block, Parts, Whole};
    let grid = |extents: [usize; 2], cut, members| {
        let layout = ArrayLayout::new(extents, cut, members).unwrap();
        [layout.axes[1].parts, layout.axes[2].parts]
    };
    assert_eq!(grid([100, 100], [Block, Block], 12), [3, 4]);
    assert_eq!(grid([100, 1000], [Block, Block], 8), [1, 8]);
    assert_eq!(grid([100, 100], [Whole, Block], 7), [1, 7]);
    assert_eq!(grid([1 << 40, 3], [Block, Block], 4), [4, 1]);
    assert_eq!(grid([100, 100], [Parts(6), Block], 12), [6, 2]);
    assert_eq!(grid([100, 100], [Parts(12), Parts(1)], 12), [12, 1]);
}

#[test]
fn what_cannot_be_an_array_is_refused_with_its_axis() {
    use Distribution::{Block, BlockCyclic, Parts, Whole};
    for cut in [[Parts(5), Block], [Parts(0), Block], [Parts(2), Parts(2)], [Parts(2), Whole]] {
        assert_eq!(ArrayLayout::new([64, 64], cut, 6), Err(ArrayError::Grid { members: 6 }), "{cut:?}");
    }
    assert_eq!(ArrayLayout::new([4, 0], [Block, Block], 2), Err(ArrayError::Extent { axis: 1, extent: 0 }));
    let much = (1 << 44) + 1;
    assert_eq!(ArrayLayout::new([much], [Block], 2), Err(ArrayError::Extent { axis: 0, extent: much }));
    assert_eq!(ArrayLayout::new([4, 4], [Block, BlockCyclic(0)], 2), Err(ArrayError::EmptyBlock { axis: 1 }));
    assert_eq!(ArrayLayout::new([4, 4], [Whole, Whole], 2), Err(ArrayError::NotCut { members: 2 }));
    assert!(ArrayLayout::new([4, 4], [Whole, Whole], 1).is_ok());
}

#[cfg(feature = "ndarray")]
#[test]
fn a_view_has_the_own_elements_and_not_the_halo() {
    use super::{ArrayPart, Halo};
    let layout = ArrayLayout::new([5, 7], [Distribution::Block, Distribution::Whole], 2).unwrap();
    let mut part = ArrayPart::<f64, 2>::new(layout, 1, Halo::new(2), None);
    part.values_mut().fill(-1.0);
    part.for_each(|[row, column], element| *element = (10 * row + column) as f64);
    let view = part.view();
    assert_eq!(view.shape(), [3, 7]);
    assert_eq!((view[[0, 0]], view[[2, 6]]), (20.0, 46.0));
    assert_eq!(view.sum(), part.owned().sum::<f64>());
    part.view_mut().fill(1.0);
    assert_eq!(part.owned().sum::<f64>(), 21.0);
    assert_eq!(part[[-1, 0]], -1.0);
    let none = ArrayPart::<f64, 2>::new(
        ArrayLayout::new([1, 7], [Distribution::Block, Distribution::Whole], 2).unwrap(),
        0,
        Halo::new(1),
        None,
    );
    assert_eq!(none.view().len(), none.owned().count());
}
