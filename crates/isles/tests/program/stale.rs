//! A program that uses handles of an earlier run: each is refused by name, and the new run is unaffected.

use super::{command, end_of};
use isles::prelude::*;
use isles::{Canceller, Counter, ErrorKind, Global, Launch, Phaser, PlaceLocal, Replicated, Result, Team};
use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::process::{ExitCode, Stdio};

/// Seconds of silence after which the first run is given up, with a finish and a call under way; the
/// second one is never silent.
const LIMIT: &str = "5";

/// Error text of every handle of another run.
const REFUSED: &str = "a handle of a run that has ended";

/// One handle of each kind.
struct Handles {
    counter: Counter,
    global: Global<u64>,
    local: PlaceLocal<u64>,
    copies: Replicated<u64>,
    team: Team,
    world: Team,
    phaser: Phaser,
    canceller: Canceller,
    /// A channel here and one at the next place.
    channels: [(Sender<u64>, Receiver<u64>); 2],
    waits: Vec<Pin<Box<dyn Future<Output = Result<()>>>>>,
}

thread_local! {
    /// Bodies of [`never_ends`] that have begun at this place.
    static BEGUN: Cell<u32> = const { Cell::new(0) };
    static STALE: RefCell<Option<Handles>> = const { RefCell::new(None) };
}

async fn never_ends() {
    BEGUN.set(BEGUN.get() + 1);
    pending::<()>().await;
}

/// Returns when a body more has begun at each of `bodies`, places with how many had before.
async fn until_begun(bodies: [(Place, u32); 2]) -> Result<()> {
    for (place, before) in bodies {
        while at!(place, BEGUN.get()).await? == before {
            isles::yield_now().await;
        }
    }
    Ok(())
}

impl Handles {
    async fn new(value: u64) -> Result<Handles> {
        let there = here().next();
        let before = [(here(), BEGUN.get()), (there, at!(there, BEGUN.get()).await?)];
        let finish = finish(never_ends());
        let canceller = finish.canceller();
        let mut waits: Vec<Pin<Box<dyn Future<Output = Result<()>>>>> =
            vec![Box::pin(finish), Box::pin(async move { at!(there, never_ends().await).await })];
        let mut begun = pin!(until_begun(before));
        // An operation may give way at its first poll, before it has begun.
        poll_fn(|context| {
            for wait in &mut waits {
                assert!(wait.as_mut().poll(context).is_pending(), "what never ends has ended");
            }
            begun.as_mut().poll(context)
        })
        .await?;
        Ok(Handles {
            counter: Counter::new(),
            global: Global::new(value),
            local: PlaceLocal::with(value, |value| value).await?,
            copies: Replicated::new(value).await?,
            team: Team::from_places(&places().collect::<Vec<_>>())?,
            world: Team::world(),
            phaser: Phaser::new(),
            canceller,
            channels: [channel(1), channel_at(there, 1).await?],
            waits,
        })
    }

    /// Uses each in whatever way there is.
    async fn are_refused(mut self) {
        fn refused<T>(result: Result<T>) {
            let error = result.err().expect("a handle of another run was taken");
            assert!(error.to_string().contains(REFUSED), "{error}");
        }
        fn misused<T>(result: Result<T>) {
            assert_eq!(result.as_ref().err().map(isles::Error::kind), Some(&ErrorKind::Misused));
            refused(result);
        }
        fn panics<T>(used: impl FnOnce() -> T) {
            let payload = catch_unwind(AssertUnwindSafe(used)).err().expect("it was taken");
            let said = payload.downcast_ref::<String>().expect("a text");
            assert!(said.contains(REFUSED), "{said}");
        }
        let there = here().next();
        let Handles { counter, global, local, copies, team, world, phaser, channels, .. } = &self;
        for (sender, receiver) in channels {
            misused(sender.send(666).await.map_err(isles::Error::from));
            misused(sender.try_send(666).await.map_err(isles::Error::from));
            misused(receiver.recv().await.map_err(isles::Error::from));
            let chosen = select! {
                sent = sender.send(666) => sent.map_err(isles::Error::from),
                got = receiver.recv() => got.map(drop).map_err(isles::Error::from),
            };
            misused(chosen);
            sender.close();
            refused(at!(there, [sender] _ = sender.clone()).await);
        }
        misused(counter.add(1).await);
        misused(counter.clone().take_below(7_u64).await);
        misused(counter.ask_below(7_u64, 2).await);
        assert!(!counter.is_near());
        refused(at!(there, [counter] _ = counter.clone()).await);
        panics(|| global.open());
        refused(at!(there, [global] _ = global.clone()).await);
        panics(|| *local.lock());
        panics(|| *local.clone().read());
        misused(local.reduce(|one, other| one + other).await);
        refused(at!(there, [local] _ = local.clone()).await);
        refused(at!(there, [copies] _ = copies.clone()).await);
        for team in [team, world] {
            misused(team.barrier().await);
            misused(team.all_reduce(1_u64, |one, other| one + other).await);
            misused(team.send(1, &1_u64).await);
            misused(team.recv::<u64>(1).await);
            misused(PlaceLocal::<u64>::new_on(team, || 0).await);
            refused(at!(there, [team] _ = team.clone()).await);
        }
        misused(phaser.register());
        misused(phaser.advance().await);
        misused(phaser.resume());
        misused(phaser.phase());
        self.canceller.cancel("it must not come to anybody");
        for wait in &mut self.waits {
            misused(wait.as_mut().await);
        }
    }

    /// Uses each as it is meant.
    async fn serve(self, value: u64) -> Result<()> {
        let places = isles::place_count() as u64;
        let Handles { counter, global, local, copies, team, world, phaser, canceller, channels, waits } =
            self;
        for (sender, receiver) in channels {
            sender.send(value).await?;
            assert_eq!(receiver.recv().await?, value);
        }
        assert_eq!(counter.add(1).await?, 0);
        assert_eq!(*global.open().unwrap(), value);
        assert_eq!(local.reduce(|one, other| one + other).await?, value * places);
        finish(async {
            for place in isles::places() {
                spawn_at!(place, [local, copies, team, world, phaser] {
                    assert_eq!(*local.lock(), *copies);
                    for team in [team, world] {
                        let size = team.all_reduce(1_u64, |one, other| one + other).await?;
                        assert_eq!(size, isles::place_count() as u64);
                    }
                    assert_eq!(phaser.advance().await?, 1);
                    Ok(())
                });
            }
            drop(phaser);
        })
        .await?;
        canceller.cancel("enough");
        drop(waits);
        Ok(())
    }
}

async fn keep() -> Result<()> {
    let handles = Handles::new(7).await?;
    STALE.set(Some(handles));
    Ok(())
}

async fn use_stale() -> Result<()> {
    // Made in the same order, so that each has the number of the one of that run.
    let ours = Handles::new(9).await?;
    let stale = STALE.take().expect("they were made by the first run");
    stale.are_refused().await;
    ours.serve(9).await
}

/// Starts two runs.
pub(crate) fn in_the_next_run() -> ExitCode {
    let launch = Launch::from_environment().unwrap();
    let error = launch.clone().run(keep).unwrap().0.unwrap_err();
    let is_given_up = ["the run is stalled", "nothing has happened"];
    assert!(is_given_up.iter().any(|said| error.to_string().contains(said)), "{error}");
    launch.run(use_stale).unwrap().0.unwrap();
    ExitCode::SUCCESS
}

/// Runs this program on `machine`.
pub(crate) fn check(machine: &str) {
    let mut program = command("stale handles", machine);
    program.env("ISLES_STALL_LIMIT", LIMIT).stdout(Stdio::null()).stderr(Stdio::piped());
    let (code, said) = end_of(program.spawn().unwrap());
    assert_eq!(code, Some(0), "on {machine}: {said}");
}
