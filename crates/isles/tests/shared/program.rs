//! `shared [ROUNDS]`: random programs over shared objects, on the machine that `ISLES_MACHINE` names.

mod round;
#[path = "../rounds/mod.rs"]
mod rounds;

#[isles::main]
async fn main() -> isles::Result<()> {
    let rounds = rounds::run(round::round).await?;
    println!("{rounds} programs over shared objects: each guard as in the sequential model");
    Ok(())
}
