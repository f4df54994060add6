//! `windows [ROUNDS]`: random programs over windows, on the machine that `ISLES_MACHINE` names.

mod round;
#[path = "../rounds/mod.rs"]
mod rounds;

#[isles::main]
async fn main() -> isles::Result<()> {
    let rounds = rounds::run(round::round).await?;
    println!("{rounds} programs over windows: each part as in the sequential model");
    Ok(())
}
