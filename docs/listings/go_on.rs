//! Items dealt out over all places, some of them bad: what can be counted is counted, and the errors are a list.
use isles::prelude::*;

/// Result of one item, or the reason why it failed.
type Outcome = Result<usize, String>;

/// A function that fails for some items.
fn count(line: &str) -> Result<usize, std::num::ParseIntError> {
    line.split_whitespace().map(|word| word.parse::<usize>()).sum()
}

#[isles::main]
async fn main() -> isles::Result<()> {
    let lines = ["1 2 3", "4 x", "5", "", "6 7", "8.5"].map(String::from);
    let lines = Replicated::new(lines.to_vec()).await?;
    let next = Counter::new();
    let by_place = everywhere!({
        let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
        while let Some(item) = next.take_below(lines.len()).await? {
            // No `?` on what the item itself does: its error is a value, and the loop goes on.
            let outcome = count(&lines[item]).map_err(|error| error.to_string());
            outcomes.push((item, outcome));
        }
        outcomes
    })
    .await?;

    let mut outcomes = by_place.concat();
    outcomes.sort_by_key(|(item, _)| *item); // who computed an item depends on the run, the list does not
    let mut sum = 0;
    for (item, outcome) in &outcomes {
        match outcome {
            Ok(number) => sum += number,
            Err(error) => println!("line {}: {error}", item + 1),
        }
    }
    println!("the sum of the good lines is {sum}");
    assert_eq!((outcomes.len(), sum), (6, 24));
    Ok(())
}
