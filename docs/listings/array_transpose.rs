//! A table in rows becomes the transposed one, in rows too; then it is dealt out, and elements are read from afar.
use isles::array::{DistArray, Distribution};
use isles::prelude::*;

const ROWS: usize = 30;
const COLUMNS: usize = 50;

#[isles::main]
async fn main() -> isles::Result<()> {
    let (team, in_rows) = (Team::world(), [Distribution::Block, Distribution::Whole]);
    let table = DistArray::<u64, 2>::new(&team, [ROWS, COLUMNS], in_rows).await?;
    let turned = DistArray::<u64, 2>::new(&team, [COLUMNS, ROWS], in_rows).await?;
    everywhere!({
        table.lock().for_each(|[row, column], element| *element = (1_000 * row + column) as u64);
        table.transpose_into(&turned).await?; // called by each place
        turned.lock().for_each(|[row, column], element| assert_eq!(*element, (1_000 * column + row) as u64));
    })
    .await?;

    let dealt = turned.redistribute([Distribution::Cyclic, Distribution::BlockCyclic(4)]).await?;
    let corners = dealt.get_many(&[[0, 0], [0, ROWS - 1], [COLUMNS - 1, 0], [COLUMNS - 1, ROWS - 1]]).await?;
    assert_eq!(corners, [0, 29_000, 49, 29_049]);
    dealt.set([0, 0], 7).await?;
    println!("the first element is {} at {}", dealt.get([0, 0]).await?, dealt.owner([0, 0])?);
    Ok(())
}
