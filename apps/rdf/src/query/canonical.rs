//! A fixed order of solutions, so that choices left open by SPARQL do not depend on the number of places.
//!
//! `LIMIT` without `ORDER BY` may take any solutions; here these are the first by the bytes of their terms. It changes
//! no table. Invariant: the order depends on the terms alone, not on their numbers.

use super::table::Table;
use crate::peers::Peers;
use crate::store::dictionary::UNBOUND;
use rustc_hash::FxHashMap;

/// Sorts the rows of this place by the bytes of their terms, column by column; returns their order. All places call
/// it.
///
/// # Errors
/// A place has died.
pub async fn order(table: &Table, peers: &Peers) -> isles::Result<Vec<u32>> {
    let terms = peers.fetch(table.columns.iter().flatten().copied()).await?;
    let dictionary = peers.dictionary();
    let bytes = |number: u32| match number {
        UNBOUND => &[][..],
        number => terms.bytes(number, peers.numbering(), &dictionary),
    };
    let mut numbers: Vec<u32> = table.columns.iter().flatten().copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.sort_unstable_by(|one, other| bytes(*one).cmp(bytes(*other)));
    let ranks: FxHashMap<u32, u32> = numbers.iter().copied().zip(0..).collect();
    let ranked: Vec<Vec<u32>> =
        table.columns.iter().map(|column| column.iter().map(|number| ranks[number]).collect()).collect();
    let mut rows: Vec<u32> = (0..table.rows as u32).collect();
    rows.sort_unstable_by(|one, other| {
        let key = |row: &u32| ranked.iter().map(|column| column[*row as usize]).collect::<Vec<_>>();
        match ranked.as_slice() {
            [column] => column[*one as usize].cmp(&column[*other as usize]),
            _ => key(one).cmp(&key(other)),
        }
    });
    Ok(rows)
}
