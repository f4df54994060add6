//! The prelude suffices for a program that distributes work.

use isles::prelude::*;

#[isles::test(places = 3)]
async fn a_bare_literal_is_a_limit_and_every_place_counts_with_it() -> isles::Result<()> {
    assert_eq!(place_count(), 3);
    let next = Counter::new();
    let dealt = everywhere!({
        let mut mine = Vec::new();
        while let Some(number) = next.take_below(50).await? {
            mine.push(number);
            yield_now().await;
        }
        mine
    })
    .await?;
    let mut dealt: Vec<i32> = dealt.into_iter().flatten().collect();
    dealt.sort_unstable();
    assert_eq!(dealt, (0..50).collect::<Vec<_>>());
    Ok(())
}

#[isles::test(places = 2)]
async fn a_counter_gives_numbers_of_the_type_of_its_limit() -> isles::Result<()> {
    let next = Counter::new();
    assert_eq!(next.take_below(-1).await?, None);
    assert_eq!(next.take_below(2_i8).await?, Some(0_i8));
    assert_eq!(next.take_below(2_usize).await?, Some(1_usize));
    next.set(i64::MAX as u64 - 1).await?;
    assert_eq!(next.take_below(100_i32).await?, None);
    assert_eq!(next.take_below(i64::MAX).await?, Some(i64::MAX - 1));
    assert_eq!(next.take_below(i64::MAX).await?, None);
    Ok(())
}

/// A signature can name the errors of channels as the book does.
#[isles::test(places = 1)]
async fn the_errors_of_channels_are_there() -> isles::Result<()> {
    async fn first(receiver: Receiver<u8>) -> Result<u8, RecvError> {
        receiver.recv().await
    }
    async fn give(sender: Sender<u8>, value: u8) -> Result<(), SendError<u8>> {
        sender.send(value).await
    }
    let (sender, receiver) = channel(1);
    give(sender, 7).await.expect("there is room");
    assert_eq!(first(receiver.clone()).await.ok(), Some(7));
    assert!(first(receiver).await.is_err());
    let (sender, receiver) = channel(1);
    drop(receiver);
    assert_eq!(give(sender, 8).await.unwrap_err().kind, SendErrorKind::Closed);
    Ok(())
}
