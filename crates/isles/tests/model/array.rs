//! Distributed arrays against one that lies in one place: halos, moves, elements from anywhere, files.

use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::{ErrorKind, Launch, Machine, Random, Result};
use std::path::PathBuf;

const MACHINES: [Machine; 2] = [Machine::Threads, Machine::Loopback];

/// Runs `main` over so many places of each machine.
fn on_machines<F: Future<Output = Result<()>> + 'static>(places: &[u32], main: fn() -> F) {
    for machine in MACHINES {
        for places in places {
            let launch = Launch::from_environment().unwrap().machine(machine).places(*places);
            launch.run(main).unwrap().0.unwrap_or_else(|error| panic!("{places} places: {error}"));
        }
    }
}

/// What stands at an index of a filled array.
fn value([first, middle, last]: [usize; 3]) -> f64 {
    (first * 10_000 + middle * 100 + last + 1) as f64
}

/// The last axes of three.
fn at<const N: usize>(index: [usize; N]) -> [usize; 3] {
    std::array::from_fn(|axis| if axis + N < 3 { 0 } else { index[axis + N - 3] })
}

fn any_distribution(random: &mut Random) -> Distribution {
    match random.below(4) {
        0 => Distribution::Whole,
        1 => Distribution::Block,
        2 => Distribution::Cyclic,
        _ => Distribution::BlockCyclic(random.below(5) as usize + 1),
    }
}

/// Distributions of which one at least is cut.
fn cut<const N: usize>(
    random: &mut Random,
    mut any: impl FnMut(&mut Random) -> Distribution,
) -> [Distribution; N] {
    let mut all = [Distribution::Whole; N];
    all.iter_mut().for_each(|one| *one = any(random));
    if all.iter().all(|one| *one == Distribution::Whole) {
        all[random.below(N as u64) as usize] = Distribution::Block;
    }
    all
}

/// Every part with its halo is what the formula says, for random arrays of `N` axes.
async fn halos<const N: usize>(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, N as u64);
    let extents: [usize; N] = std::array::from_fn(|_| random.below(12) as usize + 1);
    let block = |random: &mut Random| [Distribution::Whole, Distribution::Block][random.below(2) as usize];
    let (width, is_periodic) = (random.below(4) as usize, random.below(2) == 0);
    let halo = if is_periodic { Halo::periodic(width) } else { Halo::new(width) };
    let team = Team::world();
    let array = DistArray::<f64, N>::with_halo(&team, extents, cut(&mut random, block), halo).await?;
    everywhere!({
        array.lock().for_each(|index, element| *element = value(at(index)));
        let mut calls = 0;
        array.exchange_while(|_| calls += 1).await?;
        assert_eq!(calls, 1);
        let part = array.read();
        let own = part.extents();
        if own.contains(&0) {
            return Ok(());
        }
        let start = part.global([0; N]);
        let sides: [usize; N] = own.map(|own| own + 2 * width);
        for number in 0..sides.iter().product::<usize>() {
            let mut rest = number;
            let mut local = [0_isize; N];
            for axis in (0..N).rev() {
                local[axis] = (rest % sides[axis]) as isize - width as isize;
                rest /= sides[axis];
            }
            let index: [isize; N] = std::array::from_fn(|axis| start[axis] as isize + local[axis]);
            let is_inside = (0..N).all(|axis| (0..extents[axis] as isize).contains(&index[axis]));
            let wrapped: [usize; N] =
                std::array::from_fn(|axis| index[axis].rem_euclid(extents[axis] as isize) as usize);
            let wanted = if is_inside || is_periodic { value(at(wrapped)) } else { 0.0 };
            assert_eq!(
                part[local], wanted,
                "seed {seed}, {local:?} of {start:?} in {extents:?}, {own:?}, {width}, {is_periodic}"
            );
        }
    })
    .await?;
    Ok(())
}

#[test]
fn a_halo_of_any_width_has_what_its_owners_have_with_corners() {
    on_machines(&[1, 2, 5, 6], || async {
        for seed in 0..12 {
            halos::<1>(seed).await?;
            halos::<2>(seed).await?;
            halos::<3>(seed).await?;
        }
        Ok(())
    });
}

/// Moves a random array to another distribution, and the transposed one too; elements are where they belong.
async fn moves(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 9);
    let team = Team::world();
    let extents @ [rows, columns] = [0; 2].map(|_| random.below(70) as usize + 1);
    let new = |random: &mut Random, extents| {
        let distributions = cut(random, any_distribution);
        let team = team.clone();
        async move { DistArray::<f64, 2>::new(&team, extents, distributions).await }
    };
    let source = new(&mut random, extents).await?;
    let moved = new(&mut random, extents).await?;
    let turned = new(&mut random, [columns, rows]).await?;
    everywhere!({
        source.lock().for_each(|index, element| *element = value(at(index)));
        source.copy_into(&moved).await?;
        moved.lock().for_each(|index, element| assert_eq!(*element, value(at(index))));
        moved.transpose_into(&turned).await?;
        turned.lock().for_each(|[row, column], element| assert_eq!(*element, value([0, column, row])));
        let all = turned.gather(0).await?;
        assert_eq!(all.is_some(), team.rank() == 0);
        for (number, element) in all.into_iter().flatten().enumerate() {
            assert_eq!(element, value([0, number % rows, number / rows]));
        }
        let sum = source.reduce(|one, other| one + other).await?;
        let exact: f64 =
            (0..rows * columns).map(|number| value([0, number / columns, number % columns])).sum();
        assert_eq!(sum, exact);
    })
    .await?;
    let again = moved.redistribute([Distribution::Cyclic, Distribution::Block]).await?;
    everywhere!(again.lock().for_each(|index, element| assert_eq!(*element, value(at(index))))).await?;
    Ok(())
}

#[test]
fn an_array_that_moves_has_each_element_where_it_belongs() {
    on_machines(&[1, 3, 4], || async {
        for seed in 0..12 {
            moves(seed).await?;
        }
        Ok(())
    });
}

#[test]
fn elements_are_read_and_written_from_anywhere() {
    on_machines(&[1, 4], || async {
        let cut = [Distribution::BlockCyclic(2), Distribution::Cyclic];
        let array = DistArray::<u32, 2>::new(&Team::world(), [9, 11], cut).await?;
        let written: Vec<_> = (0..99).map(|number| ([number / 11, number % 11], number as u32 * 3)).collect();
        array.set_many(&written).await?;
        array.set([8, 10], 7).await?;
        array.set_many(&[([0, 0], 1), ([0, 0], 2)]).await?;
        let indices: Vec<[usize; 2]> = written.iter().rev().map(|(index, _)| *index).collect();
        let far = places().last().expect("there is a place");
        let read = at!(far, array.get_many(&indices).await?).await?;
        let mut wanted: Vec<u32> = written.iter().rev().map(|(_, value)| *value).collect();
        (wanted[0], wanted[98]) = (7, 2);
        assert_eq!(read, wanted);
        assert_eq!(array.get([4, 4]).await?, 48 * 3);
        let owner = array.owner([4, 4])?;
        at!(owner, assert!(array.read().owned().any(|element| *element == 144))).await?;
        let doubled = DistArray::<u64, 2>::new(&Team::world(), [9, 11], cut).await?;
        everywhere!(array.map_into(&doubled, |element| u64::from(element) * 2)?).await?;
        assert_eq!(doubled.get([4, 4]).await?, 288);

        let error = array.get_many(&[[0, 0], [9, 3]]).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Misused);
        assert!(error.to_string().contains("there is no element [9, 3] in an array of [9, 11]"), "{error}");
        assert!(array.set_many(&[([0, 0], 99), ([0, 11], 3)]).await.is_err());
        assert_eq!(array.get([0, 0]).await?, 2, "nothing is written if one index is wrong");
        Ok(())
    });
}

#[test]
fn an_array_larger_than_memory_is_refused_before_it_is_allocated() {
    on_machines(&[2], || async {
        let team = Team::world();
        let new = async |extent: usize| {
            let made = DistArray::<u64, 2>::new(&team, [extent; 2], [Distribution::Block; 2]).await;
            made.err().expect("it is too large").to_string()
        };
        assert!(new(1 << 24).await.contains("the array has 2251799813685248 bytes, and this host has "));
        assert!(new(1 << 40).await.contains("the array has more than 2^64 bytes, and this host has "));
        let halo = DistArray::<u64, 1>::with_halo(&team, [9], [Distribution::Cyclic], Halo::new(1)).await;
        let text = halo.err().expect("it is dealt out").to_string();
        assert!(
            text.contains("axis 0 is dealt out and cannot have a halo; allowed: Whole and Block"),
            "{text}"
        );
        Ok(())
    });
}

/// A file that is gone when this is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_checkpoint_comes_back_whatever_way_the_array_lies_and_another_is_refused() {
    for (number, places) in [1, 3].into_iter().enumerate() {
        let name = format!("isles-array-{}-{number}", std::process::id());
        let scratch = Scratch(std::env::temp_dir().join(name));
        let path = scratch.0.clone();
        let launch = Launch::from_environment().unwrap().machine(Machine::Threads).places(places);
        launch.run(move || checkpoint(path)).unwrap().0.unwrap();
        drop(scratch);
    }
}

async fn checkpoint(path: PathBuf) -> Result<()> {
    let team = Team::world();
    let cut = [Distribution::BlockCyclic(3), Distribution::Block];
    let source = DistArray::<f64, 2>::new(&team, [13, 7], cut).await?;
    let target =
        DistArray::<f64, 2>::with_halo(&team, [13, 7], [Distribution::Block; 2], Halo::new(1)).await?;
    let other = DistArray::<f64, 2>::new(&team, [7, 13], cut).await?;
    everywhere!({
        source.lock().for_each(|index, element| *element = value(at(index)));
        source.save(&path).await?;
        target.load(&path).await?;
        target.lock().for_each(|index, element| assert_eq!(*element, value(at(index))));
    })
    .await?;
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(whole.len(), 64 + 13 * 7 * 8);
    let refusal = async || {
        let said = everywhere!(target.load(&path).await.err().map(|error| error.to_string())).await?;
        assert!(said.iter().all(|one| *one == said[0]), "each member ends alike: {said:?}");
        Ok::<_, isles::Error>(said[0].clone().expect("it is refused"))
    };
    std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(refusal().await?.contains("791 bytes; allowed: 792, as its head says"));
    std::fs::write(&path, "no checkpoint").unwrap();
    assert!(refusal().await?.contains("this is no checkpoint of an array"));
    everywhere!(other.save(&path).await?).await?;
    assert!(
        refusal().await?.contains("an array of [7, 13] with 8 bytes an element; allowed: [13, 7] with 8")
    );
    std::fs::remove_file(&path).unwrap();
    assert!(refusal().await?.contains(&format!("{}: No such file", path.display())));
    // The array is what it was.
    everywhere!(target.lock().for_each(|index, element| assert_eq!(*element, value(at(index))))).await?;
    let nowhere = path.join("below");
    let said = everywhere!(source.save(&nowhere).await.is_err()).await?;
    assert!(said.iter().all(|refused| *refused));
    Ok(())
}
