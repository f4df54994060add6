//! Collectives of teams, each against a local computation: every member knows the values of the others.
//!
//! Each test runs on threads, processes and the seeded loopback; those of `every_size` on 1, 2, 3, 5 and 8
//! places, on the team of all places and on one in another order.

use isles::prelude::*;
use isles::{ErrorKind, Plan, PlannedDeath, Result};
use isles_transport::PlaceId;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Runs a member's part at every member of a team and waits for all.
async fn everywhere(team: &Team, part: &str) -> Result<()> {
    finish(async {
        for place in team.places() {
            spawn_at!(place, take(team, part).await?);
        }
    })
    .await
}

/// Runs a member's part by its name: a function passed as a value cannot travel.
async fn take(team: &Team, part: &str) -> Result<()> {
    match part {
        "values" => values(team).await,
        "texts" => texts(team).await,
        "slices" => slices(team).await,
        "maps" => maps(team).await,
        "sums" => sums(team).await,
        "equal_rows" => equal_rows(team).await,
        "odd_rows" => odd_rows(team).await,
        "splits" => splits(team).await,
        "ahead" => ahead(team).await,
        "relays" => relays(team).await,
        "handles" => handles(team).await,
        "turns" => turns(team).await,
        "long_slices" => long_slices(team).await,
        "crowd" => crowd(team).await,
        "until_death" => until_death(team).await,
        _ => unreachable!("there is no part {part}"),
    }
}

/// Runs a part at every member of teams of several sizes and orders.
macro_rules! every_size {
    ($($name:ident => $part:literal;)*) => {$(
        mod $name {
            use super::*;

            async fn teams() -> Result<()> {
                let mut order: Vec<Place> = places().rev().collect();
                order.rotate_left(1);
                everywhere(&Team::world(), $part).await?;
                everywhere(&Team::from_places(&order)?, $part).await
            }

            #[isles::test(places = 1)]
            async fn on_1_place() -> Result<()> {
                teams().await
            }
            #[isles::test(places = 2)]
            async fn on_2_places() -> Result<()> {
                teams().await
            }
            #[isles::test(places = 3)]
            async fn on_3_places() -> Result<()> {
                teams().await
            }
            #[isles::test(places = 5)]
            async fn on_5_places() -> Result<()> {
                teams().await
            }
            #[isles::test(places = 8)]
            async fn on_8_places() -> Result<()> {
                teams().await
            }
        }
    )*};
}

every_size! {
    values_are_passed_as_a_plain_program_would => "values";
    texts_are_folded_in_the_order_of_the_ranks => "texts";
    slices_are_passed_as_a_plain_program_would => "slices";
    slices_are_folded_in_the_order_of_the_ranks => "maps";
    floating_point_sums_have_the_bits_of_one_tree => "sums";
    rows_are_dealt_out_and_put_together => "equal_rows";
    rows_of_any_lengths_are_dealt_out_and_put_together => "odd_rows";
    teams_are_split => "splits";
    members_that_run_ahead_stay_in_order => "ahead";
    short_slices_are_passed_on_by_each_root_in_turn => "relays";
    handles_are_counted_wherever_they_are_passed_on => "handles";
    collectives_leave_the_other_tasks_their_turn => "turns";
}

/// Returns the value that member `rank` passes.
fn value(rank: usize) -> (u64, String) {
    (rank as u64 * 1_000_003, format!("value of {rank}"))
}

async fn values(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    assert_eq!(team.place_of(rank), here());
    assert_eq!(team.rank_of(here()), Some(rank));
    let all: Vec<_> = (0..size).map(value).collect();
    for root in 0..size {
        team.barrier().await?;
        let given = (rank == root).then(|| value(root));
        assert_eq!(team.broadcast(root, given).await?, value(root));
        let gathered = team.gather(root, value(rank)).await?;
        assert_eq!(gathered, (rank == root).then(|| all.clone()));
        let dealt = (rank == root).then(|| all.clone());
        assert_eq!(team.scatter(root, dealt).await?, value(rank));
    }
    assert_eq!(team.all_gather(value(rank)).await?, all);
    let row = (0..size).map(|to| format!("{rank} to {to}")).collect();
    let column: Vec<String> = (0..size).map(|from| format!("{from} to {rank}")).collect();
    assert_eq!(team.all_to_all(row).await?, column);
    // Longer than an eager message.
    let long = |rank: usize| vec![rank as u16; 50_000];
    let root = size - 1;
    assert_eq!(team.broadcast(root, (rank == root).then(|| long(root))).await?, long(root));
    assert_eq!(team.all_gather(long(rank)).await?, (0..size).map(long).collect::<Vec<_>>());
    let gathered = team.gather(0, long(rank)).await?;
    assert_eq!(gathered.map(|all| all.concat().len()), (rank == 0).then_some(50_000 * size));
    assert_eq!(team.scan(long(1), |_, b| b).await?, long(1));
    Ok(())
}

async fn texts(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let text = |rank: usize| format!("<{rank}>");
    let all = |range: std::ops::Range<usize>| range.map(text).collect::<String>();
    for root in 0..size {
        let result = team.reduce(root, text(rank), |a, b| a + &b).await?;
        assert_eq!(result, (rank == root).then(|| all(0..size)));
    }
    assert_eq!(team.all_reduce(text(rank), |a, b| a + &b).await?, all(0..size));
    assert_eq!(team.scan(text(rank), |a, b| a + &b).await?, all(0..rank + 1));
    let before = team.exclusive_scan(text(rank), |a, b| a + &b).await?;
    assert_eq!(before, (rank > 0).then(|| all(0..rank)));
    // An operator may use values of its own place.
    let largest = std::cell::Cell::new(0);
    let sum = team
        .all_reduce(rank, |a, b| {
            largest.set(largest.get().max(a + b));
            a + b
        })
        .await?;
    assert_eq!(sum, size * (size - 1) / 2);
    assert!(largest.get() <= sum);
    Ok(())
}

/// Lengths of slices: none, one, short, over one message, over the limit of whole swaps, several chunks.
const LENS: [usize; 6] = [0, 1, 5, 700, 1_500, 20_000];

/// The longest length.
const LONGEST: usize = LENS[LENS.len() - 1];

/// Returns the result of `name` for `members`, computed once for all members, places and seeds.
fn expected<T: Copy + Send + Sync + 'static>(
    name: &'static str,
    members: usize,
    element: impl Fn(usize) -> T,
) -> &'static [T] {
    type Known = BTreeMap<(&'static str, usize), &'static (dyn Any + Send + Sync)>;
    static KNOWN: Mutex<Known> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap();
    let all = known.entry((name, members)).or_insert_with(|| {
        let all: Vec<T> = (0..LONGEST).map(element).collect();
        Box::leak(Box::new(all)) // the tests go on until the program ends
    });
    all.downcast_ref::<Vec<T>>().expect("a name stands for one type")
}

/// Returns the slice that member `rank` passes.
fn slice(rank: usize, len: usize) -> Vec<u64> {
    (0..len).map(|index| (rank * 1_000_000 + index) as u64).collect()
}

async fn slices(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let element = |rank: usize, index: usize| (rank * 1_000_000 + index) as u64;
    let sum = |count: usize| {
        expected("slices", count, |index| (0..count).map(|rank| element(rank, index)).sum::<u64>())
    };
    for len in LENS {
        for root in [0, size / 2, size - 1] {
            let mut own = slice(rank, len);
            team.broadcast_slice(root, &mut own).await?;
            assert!(own == slice(root, len), "broadcast of {len}");
            let mut own = slice(rank, len);
            team.reduce_slice(root, &mut own, |a, b| a + b).await?;
            assert!(
                own == if rank == root { sum(size)[..len].to_vec() } else { slice(rank, len) },
                "reduce of {len}"
            );
        }
        let mut own = slice(rank, len);
        team.all_reduce_slice(&mut own, |a, b| a + b).await?;
        assert!(own == sum(size)[..len], "all_reduce of {len}");
        let mut own = slice(rank, len);
        team.scan_slice(&mut own, |a, b| a + b).await?;
        assert!(own == sum(rank + 1)[..len], "scan of {len}");
        let mut own = slice(rank, len);
        team.exclusive_scan_slice(&mut own, |a, b| a + b).await?;
        assert!(
            own == if rank > 0 { sum(rank)[..len].to_vec() } else { slice(0, len) },
            "exclusive scan of {len}"
        );
    }
    Ok(())
}

/// Checks slices that are longer than the data in flight at once.
async fn long_slices(team: &Team) -> Result<()> {
    let (rank, size, len) = (team.rank(), team.size(), 200_000);
    let sum: Vec<u64> =
        (0..len).map(|index| (0..size).map(|rank| slice(rank, 1)[0] + index as u64).sum()).collect();
    for root in [0, size - 1] {
        let mut own = slice(rank, len);
        team.broadcast_slice(root, &mut own).await?;
        assert!(own == slice(root, len), "broadcast");
        let mut own = slice(rank, len);
        team.reduce_slice(root, &mut own, |a, b| a + b).await?;
        assert!(rank != root || own == sum, "reduce");
        let all = team.gather_slice(root, &slice(rank, len)).await?;
        assert!(
            all.is_none_or(|all| all.chunks(len).enumerate().all(|(rank, row)| row == slice(rank, len))),
            "gather"
        );
        let rows: Vec<Vec<u64>> = (0..size).map(|rank| slice(rank, len + rank)).collect();
        assert!(team.scatterv(root, Some(&rows)).await? == rows[rank], "scatter");
    }
    let mut own = slice(rank, len);
    team.all_reduce_slice(&mut own, |a, b| a + b).await?;
    assert!(own == sum, "all_reduce");
    let mut own = slice(rank, len);
    team.scan_slice(&mut own, |a, b| a + b).await?;
    assert!(rank != size - 1 || own == sum, "scan");
    let mut own = slice(rank, len);
    team.exclusive_scan_slice(&mut own, |a, _| a).await?;
    assert!(own == slice(0, len), "exclusive scan");
    Ok(())
}

#[isles::test(places = 5, machines = [threads, processes])]
async fn long_slices_are_passed_while_they_are_taken() -> Result<()> {
    everywhere(&Team::world(), "long_slices").await
}

/// An affine map modulo a prime; composing them is associative and does not commute.
type Map = [u32; 2];

fn compose(first: Map, then: Map) -> Map {
    const PRIME: u64 = 65_521;
    let [a, b, c, d] = [first[0], first[1], then[0], then[1]].map(u64::from);
    [(a * c % PRIME) as u32, ((b * c + d) % PRIME) as u32]
}

async fn maps(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let map = |rank: usize, index: usize| [2 + (rank * 7 + index) as u32 % 60_000, rank as u32 + 1];
    let own = |rank: usize, len: usize| (0..len).map(|index| map(rank, index)).collect::<Vec<Map>>();
    let folded = |count: usize| {
        expected("maps", count, |index| (0..count).map(|rank| map(rank, index)).reduce(compose).unwrap())
    };
    for len in LENS {
        let all = &folded(size)[..len];
        let mut reduced = own(rank, len);
        team.reduce_slice(size / 2, &mut reduced, compose).await?;
        assert!(rank != size / 2 || reduced == all, "reduce of {len}");
        let mut reduced = own(rank, len);
        team.all_reduce_slice(&mut reduced, compose).await?;
        assert!(reduced == all, "all_reduce of {len}");
        let mut scanned = own(rank, len);
        team.scan_slice(&mut scanned, compose).await?;
        assert!(scanned == folded(rank + 1)[..len], "scan of {len}");
    }
    Ok(())
}

/// A number whose sums depend on their order.
fn number(rank: usize, index: usize) -> f64 {
    (1.0 + index as f64).sqrt() * [1e16, 1.0, -1e16, 1e-3][rank % 4] + 0.1 * rank as f64
}

/// Returns the sum that every reduction must return: neighbours first until a power of two is left, then a perfect
/// tree.
fn tree_sum(mut numbers: Vec<f64>) -> f64 {
    let size = numbers.len();
    let width = if size.is_power_of_two() { size } else { size.next_power_of_two() / 2 };
    let pairs: Vec<f64> = numbers.drain(..2 * (size - width)).collect();
    let mut values: Vec<f64> = pairs.chunks(2).map(|pair| pair[0] + pair[1]).collect();
    values.append(&mut numbers);
    while values.len() > 1 {
        values = values.chunks(2).map(|pair| pair[0] + pair[1]).collect();
    }
    values[0]
}

async fn sums(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let sum = |index: usize| tree_sum((0..size).map(|rank| number(rank, index)).collect());
    for root in 0..size {
        let result = team.reduce(root, number(rank, 0), |a, b| a + b).await?;
        assert_eq!(result.map(f64::to_bits), (rank == root).then(|| sum(0).to_bits()));
    }
    assert_eq!(team.all_reduce(number(rank, 0), |a, b| a + b).await?.to_bits(), sum(0).to_bits());
    for len in LENS {
        let expected = &expected("sums", size, |index| sum(index).to_bits())[..len];
        let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<u64>>();
        let own: Vec<f64> = (0..len).map(|index| number(rank, index)).collect();
        let mut all = own.clone();
        team.all_reduce_slice(&mut all, |a, b| a + b).await?;
        assert!(bits(&all) == expected, "all_reduce of {len}");
        let mut one = own;
        team.reduce_slice(size - 1, &mut one, |a, b| a + b).await?;
        assert!(rank != size - 1 || bits(&one) == expected, "reduce of {len}");
    }
    Ok(())
}

async fn equal_rows(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    for len in [0, 1, 5, 700, 9_000] {
        let all: Vec<u64> = (0..size).flat_map(|rank| slice(rank, len)).collect();
        for root in [0, size - 1] {
            let gathered = team.gather_slice(root, &slice(rank, len)).await?;
            assert!(gathered == (rank == root).then(|| all.clone()), "gather of {len}");
            let dealt = team.scatter_slice(root, (rank == root).then_some(&all[..])).await?;
            assert!(dealt == slice(rank, len), "scatter of {len}");
            let (mut whole, mut part) = (vec![7; size * len], vec![7; len]);
            let into = (rank == root).then_some(&mut whole[..]);
            team.gather_slice_into(root, &slice(rank, len), into).await?;
            assert!(whole == if rank == root { all.clone() } else { vec![7; size * len] }, "gather of {len}");
            team.scatter_slice_into(root, (rank == root).then_some(&all[..]), &mut part).await?;
            assert!(part == slice(rank, len), "scatter of {len}");
        }
        let mut whole = vec![7; size * len];
        team.all_gather_slice_into(&slice(rank, len), &mut whole).await?;
        assert!(whole == all, "all_gather of {len}");
        assert!(team.all_gather_slice(&slice(rank, len)).await? == all, "all_gather of {len}");
        let element =
            |from: usize, to: usize, index: usize| (from * 1_000 + to) as u64 * 100_000 + index as u64;
        let row: Vec<u64> =
            (0..size).flat_map(|to| (0..len).map(move |index| element(rank, to, index))).collect();
        let column: Vec<u64> =
            (0..size).flat_map(|from| (0..len).map(move |index| element(from, rank, index))).collect();
        assert!(team.all_to_all_slice(&row).await? == column, "all_to_all of {len}");
        team.all_to_all_slice_into(&row, &mut whole).await?;
        assert!(whole == column, "all_to_all of {len}");
    }
    // Elements whose size is no power of two, and whose chunks end at odd bytes.
    let odd = |rank: usize| vec![[rank as u8, 1, 2]; 30_000];
    assert!(team.all_gather_slice(&odd(rank)).await? == (0..size).flat_map(odd).collect::<Vec<_>>());
    Ok(())
}

async fn odd_rows(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    // Some members have no elements, some several chunks.
    let len = |from: usize, to: usize| [0, 3, 700, 20_000][(from * 3 + to) % 4] + to;
    let row = |from: usize, to: usize| slice(from * 10 + to, len(from, to));
    for root in [0, size - 1] {
        let gathered = team.gatherv(root, &row(rank, 0)).await?;
        let expected: Vec<Vec<u64>> = (0..size).map(|from| row(from, 0)).collect();
        assert!(gathered == (rank == root).then_some(expected), "gather");
        let rows: Vec<Vec<u64>> = (0..size).map(|to| row(root, to)).collect();
        assert!(
            team.scatterv(root, (rank == root).then_some(&rows[..])).await? == row(root, rank),
            "scatter"
        );
    }
    let short: Vec<Vec<u8>> = (0..size).map(|rank| vec![rank as u8; rank % 3]).collect();
    assert_eq!(team.all_gatherv(&short[rank]).await?, short);
    let all: Vec<Vec<u64>> = (0..size).map(|from| row(from, 1)).collect();
    assert!(team.all_gatherv(&all[rank]).await? == all, "all_gather");
    let rows: Vec<Vec<u64>> = (0..size).map(|to| row(rank, to)).collect();
    let columns: Vec<Vec<u64>> = (0..size).map(|from| row(from, rank)).collect();
    assert!(team.all_to_allv(&rows).await? == columns, "all_to_all");
    Ok(())
}

async fn splits(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    for round in 0..3 {
        // Three colours, each in the opposite order.
        let part = team.split((rank + round) % 3, size - rank).await?;
        let members: Vec<usize> = (0..size).rev().filter(|other| other % 3 == rank % 3).collect();
        assert_eq!(part.size(), members.len());
        assert_eq!(members[part.rank()], rank);
        assert_eq!(part.all_gather(rank).await?, members);
        let halves = part.split(part.rank() % 2, 0).await?;
        let sum = halves.all_reduce(rank, |a, b| a + b).await?;
        assert_eq!(sum, members.iter().skip(part.rank() % 2).step_by(2).sum());
        part.barrier().await?;
    }
    let alone = team.split(rank, 0).await?;
    assert_eq!((alone.size(), alone.all_gather(rank).await?), (1, vec![rank]));
    Ok(())
}

async fn ahead(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    for number in 0..200_u64 {
        if rank > 0 && number % 50 == 0 {
            // The root does not wait for the others.
            isles::yield_now().await;
        }
        assert_eq!(team.broadcast(0, Some(number + rank as u64)).await?, number);
        let last = team.reduce(size - 1, number, |a, b| a.max(b)).await?;
        assert_eq!(last, (rank == size - 1).then_some(number));
    }
    let mut long = vec![0_u64; 30_000];
    for number in 0..10 {
        long.fill(if rank == 0 { number } else { 0 });
        team.broadcast_slice(0, &mut long).await?;
        assert!(long.iter().all(|element| *element == number));
    }
    Ok(())
}

/// Broadcasts many slices that fit a queue, so that they take every position in one.
async fn relays(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    for number in 0..300 {
        let (root, len) = (number % size, number * 37 % 1_100);
        let sent: Vec<u64> = (number as u64..).take(len).collect();
        let mut own = if rank == root { sent.clone() } else { vec![0; len] };
        team.broadcast_slice(root, &mut own).await?;
        assert!(own == sent, "broadcast {number} of {len}");
    }
    Ok(())
}

async fn handles(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    for root in 0..size {
        let number = team.broadcast(root, (rank == root).then(|| Global::new(root * 7))).await?;
        assert_eq!(number.home(), team.place_of(root));
        assert_eq!(at!(number.home(), *number.open()?).await?, root * 7);
        team.barrier().await?;
    }
    let all = team.all_gather(Global::new(rank * 11)).await?;
    team.barrier().await?;
    assert_eq!(*all[rank].open()?, rank * 11);
    let other = all[(rank + 1) % size].clone();
    drop(all);
    assert_eq!(at!(other.home(), *other.open()?).await?, (rank + 1) % size * 11);
    Ok(())
}

async fn turns(team: &Team) -> Result<()> {
    let over = std::rc::Rc::new(std::cell::Cell::new(false));
    let seen = over.clone();
    spawn(async move { seen.set(true) });
    for _ in 0..100 {
        team.barrier().await?;
    }
    assert!(over.get(), "a task that was ready had no turn in 100 barriers");
    Ok(())
}

/// Returns the faults of a team as its members see them: the kind and text of each member's error, by rank.
async fn faults(team: &Team, fails: &str) -> Result<Vec<(ErrorKind, String)>> {
    let seen = Global::new(std::cell::RefCell::new(Vec::new()));
    finish(async {
        for place in team.places() {
            spawn_at!(place, {
                if let Err(error) = attempt(team, fails).await {
                    let (rank, kind, text) = (team.rank(), error.kind().clone(), error.to_string());
                    at!(seen.home(), [seen, rank, kind, text] {
                        seen.open()?.borrow_mut().push((rank, kind.clone(), text.clone()));
                    })
                    .await?;
                }
            });
        }
    })
    .await?;
    let mut faults = seen.open()?.take();
    faults.sort_by_key(|(rank, ..)| *rank);
    assert!(faults.iter().map(|(rank, ..)| *rank).eq(team_ranks(team)), "{fails}: {faults:?}");
    Ok(faults.into_iter().map(|(_, kind, text)| (kind, text)).collect())
}

fn team_ranks(team: &Team) -> std::ops::Range<usize> {
    0..team.size()
}

async fn attempt(team: &Team, fails: &str) -> Result<()> {
    team.barrier().await?;
    let rank = team.rank();
    match (fails, rank) {
        ("order", 1) => drop(team.all_reduce(1, |a, b| a + b).await?),
        ("roots", rank) => drop(team.broadcast(rank % 2, Some(rank)).await?),
        ("root of reduce", rank) => drop(team.reduce(usize::from(rank == 2), rank, |a, b| a + b).await?),
        ("root of gather", rank) => drop(team.gather(usize::from(rank == 2), rank).await?),
        ("length", rank) => team.all_reduce_slice(&mut vec![1_u64; 10 + rank % 2], |a, b| a + b).await?,
        ("chunk", rank) => team.broadcast_slice(0, &mut vec![1_u64; 1_000 + rank % 2]).await?,
        ("types", 1) => drop(team.broadcast(0, Some(1_u32)).await?),
        ("types", _) => drop(team.broadcast(0, Some(1_u64)).await?),
        ("text", 1) => drop(team.broadcast(0, None::<Vec<u8>>).await?),
        ("text", _) => drop(team.broadcast(0, Some("text".to_owned())).await?),
        ("own type", 1) => _ = team.all_reduce(Own(1), |a, _| a).await?,
        ("own type", _) => _ = team.all_reduce(1_u8, |a, _| a).await?,
        ("elements", 0) => team.all_reduce_slice(&mut [1_u64], |a, b| a + b).await?,
        ("elements", _) => team.all_reduce_slice(&mut [1_f64], |a, b| a + b).await?,
        ("bytes", 0) => team.broadcast_slice(0, &mut [1_u64; 10]).await?,
        ("bytes", _) => team.broadcast_slice(0, &mut [0_u32; 20]).await?,
        ("value", rank) => drop(team.broadcast(0, (rank > 0).then_some(rank)).await?),
        ("count", rank) => drop(team.all_to_all(vec![0; team.size() - rank % 2]).await?),
        ("serde", rank) => drop(team.all_gather(Unwritable(rank == 1)).await?),
        _ => {}
    }
    team.barrier().await
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Own(u8);

/// A value that cannot be written.
#[derive(serde::Deserialize)]
struct Unwritable(bool);

impl serde::Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0 {
            true => Err(serde::ser::Error::custom("not this one")),
            false => serializer.serialize_bool(false),
        }
    }
}

/// Fails one collective of a new team of all places. Returns the errors of its members.
async fn failed(fails: &str) -> Result<Vec<(ErrorKind, String)>> {
    faults(&Team::from_places(&places().collect::<Vec<_>>())?, fails).await
}

#[isles::test(places = 3)]
async fn members_in_different_collectives_are_told_who_is_in_which() -> Result<()> {
    for (fails, sides) in [
        ("order", ["place 1 in `all_reduce` number 2 of i32", "in `barrier` number 2"]),
        ("roots", ["in `broadcast` number 2 with root 0", "in `broadcast` number 2 with root 1"]),
        // A member that only sends may be in the next collective when this is detected.
        ("root of reduce", [" in `reduce` number 2 with root 0", "place 2 in "]),
        ("root of gather", ["in `gather` number 2 with root 0", "place 2 in "]),
        ("types", ["place 1 in `broadcast` number 2 with root 0 of u32", "with root 0 of u64"]),
        ("text", ["place 1 in `broadcast` number 2 with root 0 of ", "String"]),
        ("own type", ["place 1 in `all_reduce` number 2 of ", "in `all_reduce` number 2 of u8"]),
        ("elements", ["place 0 in `all_reduce_slice` number 2 of u64", "`all_reduce_slice` number 2 of f64"]),
        ("bytes", ["place 0 in `broadcast_slice` number 2 with root 0 of u64", "with root 0 of u32"]),
        ("length", ["the slices differ in length: ", "`all_reduce_slice` number 2 of u64"]),
        ("chunk", ["the slices differ in length: ", "`broadcast_slice` number 2 with root 0 of u64"]),
    ] {
        for (kind, text) in failed(fails).await? {
            assert_eq!(kind, ErrorKind::Misused, "{fails}: {text}");
            assert!(sides.iter().all(|side| text.contains(side)), "{fails}: {text}");
        }
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn a_member_that_fails_tells_the_others_why() -> Result<()> {
    for (fails, own, cause) in [
        ("value", ErrorKind::Misused, "the root of a broadcast has no value"),
        ("count", ErrorKind::Misused, "2 values for the 3 members of the team"),
        ("serde", ErrorKind::Undecodable, ""),
    ] {
        let faults = failed(fails).await?;
        assert!(faults.iter().all(|(_, text)| text.contains(cause)), "{faults:?}");
        let failing = faults.iter().filter(|(kind, _)| *kind == own).count();
        assert_eq!(failing, 1, "{faults:?}");
        let printed = |(kind, text): &&(ErrorKind, String)| {
            *kind == ErrorKind::Cancelled && text.contains(" gave up `") && text.contains("number 2")
        };
        assert_eq!(faults.iter().filter(printed).count(), 2, "{faults:?}");
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn later_collectives_name_the_first_cause_and_a_new_team_goes_on() -> Result<()> {
    let all = places().collect::<Vec<_>>();
    let team = Team::from_places(&all)?;
    faults(&team, "serde").await?;
    for (kind, text) in faults(&team, "nothing more").await? {
        assert_eq!(kind, ErrorKind::Cancelled, "{text}");
        assert!(text.contains("place 1 gave up `all_gather` number 2 of "), "{text}");
    }
    everywhere(&Team::from_places(&all)?, "values").await
}

#[isles::test(places = 3)]
async fn a_panic_in_an_operator_ends_the_collective_of_all() -> Result<()> {
    let team = Team::from_places(&places().collect::<Vec<_>>())?;
    let error = finish(async {
        for place in places() {
            spawn_at!(place, {
                let rank = team.rank();
                team.all_reduce(rank, |a, b| if rank == 0 { panic!("no sum today") } else { a + b }).await?;
                team.barrier().await?;
            });
        }
    })
    .await
    .unwrap_err();
    let kinds: Vec<ErrorKind> = error.causes().iter().map(|cause| cause.kind().clone()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Panicked).count(), 1, "{error}");
    assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Cancelled).count(), 2, "{error}");
    Ok(())
}

#[isles::test(places = 3)]
async fn two_tasks_of_a_place_in_one_team_are_an_error_at_all_members() -> Result<()> {
    let team = Team::world();
    let error = finish(async {
        spawn_at!(here(), [team] team.barrier().await?);
        spawn_at!(here(), [team] team.barrier().await?);
        // The others wait for the second one.
        for place in places().skip(1) {
            spawn_at!(place, [team] {
                team.barrier().await?;
                team.barrier().await?;
            });
        }
    })
    .await
    .unwrap_err();
    let causes = causes(error);
    assert_eq!(causes.len(), 4, "{causes:?}");
    for cause in causes {
        assert_eq!(cause.kind(), &ErrorKind::Misused, "{cause}");
        assert!(cause.to_string().contains("two tasks of place 0 are in collectives of the team at once"));
    }
    Ok(())
}

#[isles::test(places = 3)]
async fn a_place_that_is_no_member_is_refused() -> Result<()> {
    let team = Team::from_places(&[
        Place::new(2).expect("there are three"),
        Place::new(1).expect("there are three"),
    ])?;
    assert_eq!(team.barrier().await.unwrap_err().kind(), &ErrorKind::Misused);
    assert_eq!(team.rank_of(here()), None);
    everywhere(&team, "values").await?;
    assert_eq!(Team::from_places(&[]).unwrap_err().kind(), &ErrorKind::Misused);
    assert_eq!(Team::from_places(&[here(), here()]).unwrap_err().kind(), &ErrorKind::Misused);
    Ok(())
}

#[isles::test(places = 2)]
async fn teams_that_come_and_go_stay_apart() -> Result<()> {
    for number in 0..100_usize {
        let team = Team::from_places(&places().collect::<Vec<_>>())?;
        finish(async {
            for place in places() {
                spawn_at!(place, {
                    let sum = team.all_reduce(number + team.rank(), |a, b| a + b).await?;
                    assert_eq!(sum, 2 * number + 1);
                });
            }
        })
        .await?;
    }
    Ok(())
}

/// Number of teams of two that each of the outer two of three places has with the middle one.
const PAIRS: usize = 40;

/// Begins a collective of each of [`PAIRS`] teams with `middle`, which gets the handles only after a barrier with the
/// other maker, when the steps of all teams have reached it.
async fn pairs_whose_handles_come_late(middle: Place, makers: &Team) -> Result<()> {
    let pair = |_| Team::from_places(&[here(), middle]);
    let teams = (0..PAIRS).map(pair).collect::<Result<Vec<Team>>>()?;
    finish(async {
        for (number, team) in teams.iter().enumerate() {
            spawn_at!(here(), sum_of_pair(team, number).await?);
        }
        isles::yield_now().await;
        // A few round trips, after which the steps have arrived in most orders of messages.
        for _ in 0..4 {
            at!(middle, ()).await?;
        }
        makers.barrier().await?;
        for (number, team) in teams.iter().enumerate() {
            spawn_at!(middle, sum_of_pair(team, number).await?);
        }
        Ok::<(), isles::Error>(())
    })
    .await
}

async fn sum_of_pair(team: &Team, number: usize) -> Result<()> {
    assert_eq!(team.all_reduce(number + team.rank(), |a, b| a + b).await?, 2 * number + 1);
    // Also one long enough to be lent or copied.
    let mut slice = vec![number as u64; 20_000];
    team.all_reduce_slice(&mut slice, |a, b| a + b).await?;
    assert!(slice.iter().all(|sum| *sum == 2 * number as u64));
    Ok(())
}

#[isles::test(places = 3, machines = [threads, processes, loopback])]
async fn the_steps_of_many_teams_wait_for_handles_that_come_late() -> Result<()> {
    let [outer, middle, other] = [0, 1, 2].map(|index| Place::new(index).expect("there are three"));
    let makers = Team::from_places(&[outer, other])?;
    finish(async {
        for maker in [outer, other] {
            spawn_at!(maker, pairs_whose_handles_come_late(middle, &makers).await?);
        }
    })
    .await
}

async fn crowd(team: &Team) -> Result<()> {
    values(team).await?;
    sums(team).await?;
    splits(team).await?;
    let mut slice = vec![team.rank() as u32; 100_000];
    team.broadcast_slice(17, &mut slice).await?;
    assert!(slice.iter().all(|element| *element == 17));
    team.all_reduce_slice(&mut slice, |a, b| a + b).await?;
    assert!(slice.iter().all(|element| *element == 17 * 48));
    Ok(())
}

#[isles::test(places = 48, machines = [threads])]
async fn forty_eight_places_take_part() -> Result<()> {
    everywhere(&Team::world(), "crowd").await
}

/// Runs collectives until an error.
async fn until_death(team: &Team) -> Result<()> {
    loop {
        team.barrier().await?;
        let sum = team.all_reduce(team.rank(), |a, b| a + b).await?;
        assert_eq!(sum, team.size() * (team.size() - 1) / 2);
        team.broadcast(team.size() - 1, Some(sum)).await?;
        let mut slice = vec![1_u32; 20_000];
        team.all_reduce_slice(&mut slice, |a, b| a + b).await?;
        team.broadcast_slice(0, &mut slice).await?;
        team.gather(0, sum).await?;
        team.all_to_all(vec![sum; team.size()]).await?;
        team.scan(1, |a, b| a + b).await?;
    }
}

/// Returns all errors of a finish.
fn causes(error: isles::Error) -> Vec<isles::Error> {
    if error.kind() == &ErrorKind::Several { error.causes() } else { vec![error] }
}

async fn survive(lost: PlaceId) -> Result<()> {
    let error = everywhere(&Team::world(), "until_death").await.unwrap_err();
    for cause in causes(error) {
        assert_eq!(cause.kind(), &ErrorKind::DeadPlace(lost), "{cause}");
    }
    let living: Vec<Place> = places().filter(|place| place.id() != lost).collect();
    let team = Team::from_places(&living)?;
    everywhere(&team, "texts").await
}

#[test]
fn a_death_ends_the_waits_of_all_members_and_the_living_go_on() {
    for seed in 0..60 {
        let lost = PlaceId(1 + seed as u32 % 4);
        let step = 20 + seed * 97 % 4_000;
        let plan = Plan { losses: vec![PlannedDeath { place: lost, step }], ..Plan::adversarial(seed) };
        let (result, _, digest) = isles::simulate(5, plan.clone(), || survive(lost));
        assert!(result.is_ok(), "seed {seed}: {}", result.unwrap_err());
        let again = isles::simulate(5, plan, || survive(lost)).2;
        assert_eq!(digest, again, "seed {seed} gives two runs");
    }
}
