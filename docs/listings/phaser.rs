//! A wave over all places, step by step.
use isles::prelude::*;

const STEPS: usize = 3;

#[isles::main]
async fn main() -> isles::Result<()> {
    let phaser = Phaser::new();
    finish(async {
        for place in places() {
            spawn_at!(place, {
                // The phaser came along: this task is registered.
                for step in 0..STEPS {
                    println!("step {step} at {}", here());
                    phaser.advance().await?; // no place is in step 1 before all have done step 0
                }
            });
        }
        drop(phaser); // this task was registered as well; it leaves
    })
    .await
}
