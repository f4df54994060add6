//! A value that stays at home while its name goes round.
use isles::prelude::*;

#[isles::main]
async fn main() -> isles::Result<()> {
    let diary = Global::new(std::cell::RefCell::new(Vec::new()));
    finish(async {
        for place in places() {
            spawn_at!(place, {
                let line = format!("{} was here", here());
                at!(diary.home(), diary.open()?.borrow_mut().push(line)).await?;
            });
        }
    })
    .await?;

    let mut lines = diary.open()?.borrow().clone();
    lines.sort();
    println!("{}", lines.join("\n"));
    assert_eq!(lines.len(), places().len());
    Ok(())
}
