//! A bounded buffer of one place: producers wait for room, the consumer waits for something.
use isles::prelude::*;
use std::collections::VecDeque;
use std::rc::Rc;

const CAPACITY: usize = 4;

#[isles::main]
async fn main() -> isles::Result<()> {
    let buffer = Rc::new(Monitor::new(VecDeque::new()));
    finish(async {
        for producer in 0..3 {
            let buffer = Rc::clone(&buffer);
            spawn(async move {
                for item in 0..10 {
                    buffer
                        .when(|items| items.len() < CAPACITY, |items| items.push_back(producer * 10 + item))
                        .await;
                }
            });
        }
        let mut sum = 0;
        for _ in 0..30 {
            sum +=
                buffer.when(|items| !items.is_empty(), |items| items.pop_front().expect("not empty")).await;
        }
        println!("the sum is {sum}");
        assert_eq!(sum, (0..30).sum());
    })
    .await
}
