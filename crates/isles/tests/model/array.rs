//! Distributed arrays against a local one: halos, moves, remote element access, files.

use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::{Combine, ErrorKind, Launch, Machine, Random, Result};
use std::path::PathBuf;

const MACHINES: [Machine; 2] = [Machine::Threads, Machine::Loopback];

/// Runs `main` with each number of places, on each machine.
fn on_machines<F: Future<Output = Result<()>> + 'static>(places: &[u32], main: fn() -> F) {
    for machine in MACHINES {
        for places in places {
            let launch = Launch::from_environment().unwrap().machine(machine).places(*places);
            launch.run(main).unwrap().0.unwrap_or_else(|error| panic!("{places} places: {error}"));
        }
    }
}

/// Returns the value at an index of a filled array.
fn value([first, middle, last]: [usize; 3]) -> f64 {
    (first * 10_000 + middle * 100 + last + 1) as f64
}

/// Pads an index to three axes, of which it is the last ones.
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

/// Returns distributions, at least one of which is cut.
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

/// Checks every part with its halo against the formula, for random arrays of `N` axes.
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

/// Moves a random array, and its transpose, to another distribution; checks the position of each element.
async fn moves(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 9);
    let team = Team::world();
    let extents @ [rows, columns] = [0; 2].map(|_| random.below(70) as usize + 1);
    let new = |random: &mut Random, extents| {
        let distributions = cut(random, any_distribution);
        let team = team.clone();
        async move {
            // In a window, the members that need elements fetch them.
            match seed % 3 {
                0 => DistArray::<f64, 2>::new(&team, extents, distributions).await,
                _ => DistArray::in_window(&team, extents, distributions, Halo::default()).await,
            }
        }
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
        for seed in 0..24 {
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
        assert!(
            error.to_string().contains("the index [9, 3] is out of bounds in an array of [9, 11]"),
            "{error}"
        );
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
        assert!(new(1 << 24).await.contains("the array has 2251799813685248 bytes, but this host has "));
        assert!(new(1 << 40).await.contains("the array has more than 2^64 bytes, but this host has "));
        let halo = DistArray::<u64, 1>::with_halo(&team, [9], [Distribution::Cyclic], Halo::new(1)).await;
        let text = halo.err().expect("it is dealt out").to_string();
        assert!(
            text.contains("axis 0 is cyclic and cannot have a halo; allowed: Whole, Block and Parts"),
            "{text}"
        );
        Ok(())
    });
}

#[test]
fn halos_count_as_memory_of_the_array_and_are_refused_with_it() {
    on_machines(&[1, 2], || async {
        let team = Team::world();
        let parts = team.size() as u64;
        for is_periodic in [false, true] {
            let halo = |width| if is_periodic { Halo::periodic(width) } else { Halo::new(width) };
            let cut = [Distribution::Block; 2];
            let said = async |width: usize| {
                let near = DistArray::<u64, 2>::in_window(&team, [4, 4], cut, halo(width)).await;
                let made = DistArray::<u64, 2>::with_halo(&team, [4, 4], cut, halo(width)).await;
                let text = made.err().expect("it is too large").to_string();
                assert_eq!(near.err().expect("it is too large").to_string(), text);
                text
            };
            let bytes = (4 + (2 << 24) * parts) * (4 + (2 << 24)) * 8;
            let text = said(1 << 24).await;
            assert!(
                text.contains(&format!("the array with its halos has {bytes} bytes, but this")),
                "{text}"
            );
            for width in [1 << 40, usize::MAX / 2, usize::MAX] {
                let text = said(width).await;
                assert!(text.contains("the array with its halos has more than 2^64 bytes"), "{text}");
            }
        }
        Ok(())
    });
}

/// A temporary file, removed on drop.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The elements of a random array, row by row, after `phases` phases: one place after the other.
struct OpenModel<const N: usize> {
    extents: [usize; N],
    elements: Vec<u64>,
}

impl<const N: usize> OpenModel<N> {
    fn position(&self, index: [usize; N]) -> usize {
        index.into_iter().zip(self.extents).fold(0, |position, (index, extent)| position * extent + index)
    }

    /// Returns a random index, and a number of elements of the line from there on.
    fn range(&self, random: &mut Random) -> ([usize; N], usize) {
        let index: [usize; N] = self.extents.map(|extent| random.below(extent as u64) as usize);
        let left = self.extents[N - 1] - index[N - 1];
        (index, random.below(left as u64 + 1) as usize)
    }
}

/// Opens and closes an array in phases, with puts of one member, then sums of all, then slices; compares it with a
/// sequential model.
async fn opened<const N: usize>(seed: u64) -> Result<()> {
    let mut random = Random::stream(seed, 10 + N as u64);
    let extents: [usize; N] = std::array::from_fn(|_| random.below(9) as usize + 1);
    let team = Team::world();
    let is_haloed = random.below(2) == 0;
    let (halo, cut) = match is_haloed {
        true => {
            let block =
                |random: &mut Random| [Distribution::Whole, Distribution::Block][random.below(2) as usize];
            (Halo::new(random.below(3) as usize), cut(&mut random, block))
        }
        false => (Halo::default(), cut(&mut random, any_distribution)),
    };
    let array = DistArray::<u64, N>::in_window(&team, extents, cut, halo).await?;
    everywhere!({
        let (me, size) = (array.team().rank() as u64, array.team().size() as u64);
        let mut model = OpenModel { extents, elements: vec![0; extents.iter().product()] };
        let mut steps = Random::stream(seed, 20);
        for _ in 0..4 {
            let open = array.open().await?;
            for step in 0..6 {
                let (index, len) = model.range(&mut steps);
                let at = model.position(index);
                let values: Vec<u64> = (0..len as u64).map(|k| 1_000 * step + k).collect();
                if step % size == me {
                    open.put(index, &values).await?;
                }
                model.elements[at..at + len].copy_from_slice(&values);
                open.fence().await?;
                let mut read = vec![0; len];
                open.get(index, &mut read).await?;
                assert_eq!(read, values);
                open.fence().await?;
            }
            let before = open.fetch_add([0; N], 3).await?;
            assert!(before >= model.elements[0]);
            model.elements[0] += 3 * size;
            let (index, len) = model.range(&mut steps);
            let at = model.position(index);
            open.accumulate(index, &vec![me + 1; len], Combine::Sum).await?;
            model.elements[at..at + len].iter_mut().for_each(|element| *element += size * (size + 1) / 2);
            open.close().await?;
            array.lock().for_each(|index, element| {
                assert_eq!(*element, model.elements[model.position(index)]);
                *element += 1;
            });
            model.elements.iter_mut().for_each(|element| *element += 1);
        }
        let whole = array.gather(0).await?;
        assert!(whole.is_none_or(|whole| whole == model.elements));
    })
    .await
    .map(drop)
}

async fn opened_of_all_axes(seeds: std::ops::Range<u64>) -> Result<()> {
    for seed in seeds {
        opened::<1>(seed).await?;
        opened::<2>(seed).await?;
        opened::<3>(seed).await?;
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn an_open_array_is_what_a_sequential_model_says_and_slices_in_between() -> Result<()> {
    opened_of_all_axes(0..8).await
}

#[test]
fn an_open_array_is_the_same_at_other_numbers_of_places() {
    on_machines(&[1, 2, 5], || opened_of_all_axes(8..12));
}

#[test]
fn an_open_array_and_one_without_a_window_refuse_what_they_cannot_do() {
    on_machines(&[2], || async {
        let team = Team::world();
        let plain = DistArray::<u32, 2>::new(&team, [4, 6], [Distribution::Block; 2]).await?;
        let error = plain.open().await.err().expect("it has no window");
        assert_eq!(*error.kind(), ErrorKind::Misused);
        assert!(
            error.to_string().contains("the array cannot be opened: it was not made by `in_window`"),
            "{error}"
        );
        assert!(error.to_string().contains("model/array.rs"), "{error}");
        assert_eq!(plain.lock().values().len(), 12); // it is as it was

        let array =
            DistArray::<u32, 2>::in_window(&team, [4, 6], [Distribution::Block; 2], Halo::new(1)).await?;
        everywhere!({
            let open = array.open().await?;
            for index in [[4, 0], [0, 6], [usize::MAX, usize::MAX]] {
                let error = open.put(index, &[1]).await.expect_err("it is outside");
                assert_eq!(*error.kind(), ErrorKind::Misused);
                assert!(
                    error
                        .to_string()
                        .contains(&format!("the index {index:?} is out of bounds in an array of [4, 6]")),
                    "{error}"
                );
                assert!(error.to_string().contains("model/array.rs"), "{error}");
            }
            assert!(open.get([3, 5], &mut [0; 2]).await.is_err());
            open.put([0, 6], &[]).await?; // nothing, at the end of a line
            let error = array.open().await.err().expect("it is open");
            assert!(error.to_string().contains("the array is already open since"), "{error}");
            open.close().await?;
        })
        .await?;
        let error = everywhere!({
            let _open = array.open().await?;
            array.read().values().len()
        })
        .await
        .expect_err("the part is no slice now");
        assert!(error.to_string().contains("the array is open to all members since"), "{error}");
        Ok(())
    });
}

/// A part that a place took out of its run stays valid memory after the run.
#[test]
fn a_part_that_outlives_its_run_is_still_there() {
    for machine in MACHINES {
        let launch = Launch::from_environment().unwrap().machine(machine).places(1);
        let kept = std::rc::Rc::new(std::cell::RefCell::new(None));
        let keep = std::rc::Rc::clone(&kept);
        let main = move || async move {
            let team = Team::world();
            let cut = [Distribution::Block];
            let array = DistArray::<u64, 1>::in_window(&team, [5000], cut, Halo::default()).await?;
            array.lock().values_mut().fill(7);
            *keep.borrow_mut() = Some(array);
            Ok::<_, isles::Error>(())
        };
        launch.run(main).unwrap().0.unwrap();
        let array = kept.take().expect("it was kept");
        assert_eq!(array.lock().values().iter().sum::<u64>(), 35_000);
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
    assert!(refusal().await?.contains("791 bytes; allowed: 792, as in its header"));
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).unwrap();
        let text = refusal().await?;
        assert!(at < 56 || text.contains("its elements have the checksum "), "{at}: {text}");
    }
    let mut swapped = whole.clone();
    swapped[64..80].rotate_left(8);
    std::fs::write(&path, &swapped).unwrap();
    assert!(refusal().await?.contains("its elements have the checksum "));
    std::fs::write(&path, "no checkpoint").unwrap();
    assert!(refusal().await?.contains("not a checkpoint of an array"));
    everywhere!(other.save(&path).await?).await?;
    assert!(
        refusal().await?.contains("an array of [7, 13] with 8 bytes per element; allowed: [13, 7] with 8")
    );
    std::fs::remove_file(&path).unwrap();
    assert!(refusal().await?.contains(&format!("{}: No such file", path.display())));
    // The array is unchanged.
    everywhere!(target.lock().for_each(|index, element| assert_eq!(*element, value(at(index))))).await?;
    let nowhere = path.join("below");
    let said = everywhere!(source.save(&nowhere).await.is_err()).await?;
    assert!(said.iter().all(|refused| *refused));
    Ok(())
}

/// Reports name the program's lines of the guard and of the exchange, and omit unused features.
#[isles::test(places = 2)]
async fn a_guard_that_is_held_over_an_exchange_is_named_with_both_lines() -> Result<()> {
    let cut = [Distribution::Block, Distribution::Whole];
    let cells = DistArray::<f64, 2>::with_halo(&Team::world(), [4, 4], cut, Halo::new(1)).await?;
    let locked = everywhere!({
        let part = cells.lock();
        cells.exchange().await?;
        drop(part);
    })
    .await
    .unwrap_err()
    .to_string();
    let lines = [line!() - 6, line!() - 7].map(|line| format!("{}:{line}:", file!()));
    assert!(locked.contains(&format!("the exchange at {}", lines[0])), "{locked}");
    assert!(locked.contains(&format!("but it is locked since {}", lines[1])), "{locked}");
    assert!(locked.contains("before the `await`") && !locked.contains("Monitor"), "{locked}");
    let read = everywhere!({
        let part = cells.read();
        cells.exchange_while(|_| ()).await?;
        drop(part);
    })
    .await
    .unwrap_err()
    .to_string();
    let line = format!("but it is read since {}:{}:", file!(), line!() - 7);
    assert!(read.contains(&line) && read.contains("guard of `read`"), "{read}");
    everywhere!(cells.exchange().await?).await?;
    Ok(())
}
