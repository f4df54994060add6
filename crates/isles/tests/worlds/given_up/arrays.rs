//! Distributed arrays with cancelled operations: those of single elements continue, those of all members end for all.

use super::{attempt, explained, interrupt, run_worlds};
use isles::array::{DistArray, Distribution, Halo};
use isles::prelude::*;
use isles::{Combine, ErrorKind, Random, Result};
use std::path::PathBuf;

type Grid = DistArray<u64, 2>;

const CUT: [Distribution; 2] = [Distribution::Block, Distribution::Whole];

const EXTENTS: [usize; 2] = [6, 5];

/// Reads and writes elements, which need no other member.
async fn elements(seed: u64, grid: &Grid) -> Result<()> {
    let mut random = Random::stream(seed, 10 + here().index() as u64);
    for _ in 0..6 {
        let [row, column] = EXTENTS.map(|extent| random.below(extent as u64) as usize);
        let value = (row * 100 + column) as u64;
        let is_right = |found: u64| assert!(found == 0 || found == value, "{found} at {row}, {column}");
        match random.below(4) {
            0 => {
                attempt("isles/array/access set", &mut random, grid.set([row, column], value)).await?;
            }
            1 => {
                let elements = [([row, column], value)];
                let set = grid.set_many(&elements);
                attempt("isles/array/access set_many", &mut random, set).await?;
            }
            2 => {
                let got = interrupt("isles/array/access get", &mut random, grid.get([row, column])).await;
                got.transpose()?.into_iter().for_each(is_right);
            }
            _ => {
                let indices = [[row, column]];
                let got = grid.get_many(&indices);
                let got = interrupt("isles/array/access get_many", &mut random, got).await.transpose()?;
                got.into_iter().flatten().for_each(is_right);
            }
        }
    }
    Ok(())
}

/// One operation of all members, `which` of [`MOVES`].
const MOVES: u64 = 9;

async fn move_all(which: u64, grids: &[Grid; 3], random: &mut Random, file: &str) -> Option<Result<()>> {
    let [haloed, dealt, turned] = grids;
    let file = PathBuf::from(file);
    match which {
        0 => interrupt("isles/array/halo exchange", random, haloed.exchange()).await,
        1 => interrupt("isles/array/halo exchange_while", random, haloed.exchange_while(|_| ())).await,
        2 => {
            let reduced = haloed.reduce(|one, other| one + other);
            interrupt("isles/array/mod reduce", random, reduced).await.map(|result| result.map(drop))
        }
        3 => interrupt("isles/array/moves copy_into", random, haloed.copy_into(dealt)).await,
        4 => {
            let gathered = interrupt("isles/array/moves gather", random, haloed.gather(0)).await;
            gathered.map(|result| result.map(drop))
        }
        5 => interrupt("isles/array/moves transpose_into", random, dealt.transpose_into(turned)).await,
        6 => {
            let moved = dealt.transpose_with(turned, |old, new| *old += new);
            interrupt("isles/array/moves transpose_with", random, moved).await
        }
        7 => interrupt("isles/array/checkpoint save", random, haloed.save(&file)).await,
        _ => interrupt("isles/array/checkpoint load", random, haloed.load(&file)).await,
    }
}

/// Operations of all members, until one is given up anywhere.
async fn moves(seed: u64, grids: &[Grid; 3], file: &str) -> Result<()> {
    let (mut drawn, mut own) = (Random::stream(seed, 1), Random::stream(seed, 30 + here().index() as u64));
    for _ in 0..20 {
        let which = drawn.below(MOVES);
        // One that was given up before it had begun is the next one.
        let ended = loop {
            if let Some(ended) = move_all(which, grids, &mut own, file).await {
                break explained(ended)?;
            }
        };
        if ended.is_none() {
            break;
        }
    }
    Ok(())
}

/// Accesses an open array until a member cancels an access.
async fn opened(seed: u64, grid: &Grid) -> Result<()> {
    let mut random = Random::stream(seed, 50 + here().index() as u64);
    for _ in 0..3 {
        let mut was_given_up = false;
        let opened = loop {
            match interrupt("isles/array/open open", &mut random, grid.open()).await {
                None => was_given_up = true,
                // It had begun before the cancellation, so the local part is no longer accessible.
                Some(Err(error)) if was_given_up && *error.kind() == ErrorKind::Misused => return Ok(()),
                Some(opened) => break explained(opened)?,
            }
        };
        let Some(open) = opened else { return Ok(()) };
        for _ in 0..2 {
            let index = EXTENTS.map(|extent| random.below(extent as u64) as usize);
            let (mut one, two) = ([0], [1]);
            match random.below(5) {
                0 => {
                    attempt("isles/array/open put", &mut random, open.put(index, &two)).await?;
                }
                1 => {
                    attempt("isles/array/open get", &mut random, open.get(index, &mut one)).await?;
                }
                2 => {
                    let added = open.accumulate(index, &two, Combine::Max);
                    attempt("isles/array/open accumulate", &mut random, added).await?;
                }
                3 => {
                    let added = open.fetch_add(index, 0);
                    attempt("isles/array/open fetch_add", &mut random, added).await?;
                }
                _ => {}
            }
        }
        let fenced = loop {
            if let Some(fenced) = interrupt("isles/array/open fence", &mut random, open.fence()).await {
                break explained(fenced)?;
            }
        };
        if fenced.is_none() {
            return Ok(());
        }
        let closed = interrupt("isles/array/open close", &mut random, open.close()).await;
        if closed.map(explained).transpose()?.flatten().is_none() {
            return Ok(());
        }
        assert!(grid.read().owned().all(|element| *element <= 1), "an element that nobody wrote");
    }
    Ok(())
}

async fn program(seed: u64) -> Result<()> {
    let (mut random, team) = (Random::stream(seed, 0), Team::from_places(&places().collect::<Vec<_>>())?);
    let made = interrupt("isles/array/mod new", &mut random, Grid::new(&team, EXTENTS, CUT)).await;
    let grid = match made {
        Some(grid) => grid?,
        None => Grid::new(&team, EXTENTS, CUT).await?,
    };
    everywhere!(elements(seed, &grid).await?).await?;
    let halo = Halo::periodic(1);
    let made = Grid::with_halo(&team, EXTENTS, CUT, halo);
    let haloed = match interrupt("isles/array/mod with_halo", &mut random, made).await {
        Some(grid) => grid?,
        None => Grid::with_halo(&team, EXTENTS, CUT, halo).await?,
    };
    let moved = interrupt("isles/array/moves redistribute", &mut random, grid.redistribute(CUT)).await;
    if moved.map(explained).transpose()?.is_some() {
        let [rows, columns] = EXTENTS;
        let turned = Grid::new(&team, [columns, rows], CUT).await?;
        let folder = std::env::temp_dir().join(format!("isles-given-up-{}-{seed}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is a folder for files");
        let file = folder.join("checkpoint").to_string_lossy().into_owned();
        everywhere!(haloed.save(std::path::Path::new(&file)).await?).await?;
        let grids = [haloed, grid, turned];
        let all = everywhere!(moves(seed, &grids, &file).await?).await;
        std::fs::remove_dir_all(&folder).expect("the folder is there");
        all?;
    }
    let team = Team::from_places(&places().collect::<Vec<_>>())?;
    let made = Grid::in_window(&team, EXTENTS, CUT, Halo::default());
    let grid = match interrupt("isles/array/mod in_window", &mut random, made).await {
        Some(grid) => grid?,
        None => Grid::in_window(&team, EXTENTS, CUT, Halo::default()).await?,
    };
    everywhere!(opened(seed, &grid).await?).await.map(drop)
}

#[test]
fn elements_are_whole_and_nobody_waits_for_ever() {
    run_worlds("arrays", program);
}
