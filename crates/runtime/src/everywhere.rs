//! One body at all places, and what came of it at each; and waiting for several futures of one task.
//!
//! The calls to the other places leave before the body here runs, so that all of them run at once. [`join_all`] gives
//! each future a waker of its own, which notes its number; so a turn of the task polls those that were woken, and the
//! whole costs as many polls as there were wake-ups, however many futures there are.

use crate::error::{Error, Result};
use crate::place::{Place, here, places};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// What `everywhere!` expands to: `call` begins the body at one place.
///
/// # Errors
/// One error is itself, several are a list, as of a finish; all bodies have ended then.
pub async fn everywhere<T, F>(call: impl Fn(Place) -> F) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>>,
{
    let here = here();
    let others = places().filter(|place| *place != here);
    let mut results = join_all(others.chain([here]).map(call).collect()).await;
    let own = results.pop();
    own.into_iter().for_each(|own| results.insert(here.index(), own));
    let (mut values, mut errors) = (Vec::with_capacity(results.len()), Vec::new());
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(error) => errors.push(error),
        }
    }
    Error::collect(errors, 0).map_or(Ok(values), Err)
}

/// Waits for all `futures`; returns their outputs in the same order.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let woken = Arc::new(Woken::all(futures.len()));
    let mut waiting = futures.len();
    let member = |(number, future)| {
        let waker = Waker::from(Arc::new(MemberWaker { number, woken: Arc::clone(&woken) }));
        JoinedFuture { waker, state: FutureState::Waiting(Box::pin(future)) }
    };
    let mut members: Vec<JoinedFuture<F>> = futures.into_iter().enumerate().map(member).collect();
    std::future::poll_fn(move |context| {
        for number in woken.take(context.waker()) {
            waiting -= usize::from(members[number].poll().is_ready());
        }
        if waiting > 0 {
            return Poll::Pending;
        }
        Poll::Ready(members.drain(..).filter_map(JoinedFuture::output).collect())
    })
    .await
}

/// Which futures of a join are to be polled.
struct Woken(Mutex<Calls>);

struct Calls {
    /// Their numbers, each once.
    numbers: Vec<usize>,
    /// By number, whether it is among them.
    is_noted: Vec<bool>,
    /// The task that waits for all; none while it polls.
    task: Option<Waker>,
}

impl Woken {
    fn all(count: usize) -> Woken {
        Woken(Mutex::new(Calls { numbers: (0..count).collect(), is_noted: vec![true; count], task: None }))
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, number: usize) {
        let mut calls = self.calls();
        if !std::mem::replace(&mut calls.is_noted[number], true) {
            calls.numbers.push(number);
        }
        let task = calls.task.take();
        drop(calls);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// The numbers that were noted since the last time; `task` is woken by the next one.
    fn take(&self, task: &Waker) -> Vec<usize> {
        let mut calls = self.calls();
        calls.task = Some(task.clone());
        let numbers = std::mem::take(&mut calls.numbers);
        numbers.iter().for_each(|number| calls.is_noted[*number] = false);
        numbers
    }
}

struct MemberWaker {
    number: usize,
    woken: Arc<Woken>,
}

impl Wake for MemberWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.note(self.number);
    }
}

/// One future of a join.
struct JoinedFuture<F: Future> {
    waker: Waker,
    state: FutureState<F>,
}

/// A future, or what came out of it.
enum FutureState<F: Future> {
    Waiting(Pin<Box<F>>),
    Over(F::Output),
}

impl<F: Future> JoinedFuture<F> {
    /// Polls it; ready once, when it ends.
    fn poll(&mut self) -> Poll<()> {
        if let FutureState::Waiting(future) = &mut self.state
            && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.waker))
        {
            self.state = FutureState::Over(output);
            return Poll::Ready(());
        }
        Poll::Pending
    }

    fn output(self) -> Option<F::Output> {
        match self.state {
            FutureState::Over(output) => Some(output),
            FutureState::Waiting(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::pin::pin;

    const COUNT: usize = 1000;

    #[test]
    fn a_join_polls_as_often_as_its_futures_are_woken() {
        let polls = Cell::new(0);
        let wakers = RefCell::new(vec![None; COUNT]);
        let answered = RefCell::new(vec![false; COUNT]);
        let (polls, wakers, answered) = (&polls, &wakers, &answered);
        let waits = |number: usize| {
            std::future::poll_fn(move |context| {
                polls.set(polls.get() + 1);
                if answered.borrow()[number] {
                    return Poll::Ready(number);
                }
                wakers.borrow_mut()[number] = Some(context.waker().clone());
                Poll::Pending
            })
        };
        let mut all = pin!(join_all((0..COUNT).map(waits).collect()));
        let mut context = Context::from_waker(Waker::noop());
        // The last one first, and each is woken twice.
        for number in (0..COUNT).rev() {
            assert!(all.as_mut().poll(&mut context).is_pending());
            answered.borrow_mut()[number] = true;
            let waker = wakers.borrow_mut()[number].take().expect("it was polled and waits");
            waker.wake_by_ref();
            waker.wake();
        }
        assert_eq!(all.as_mut().poll(&mut context), Poll::Ready((0..COUNT).collect()));
        assert_eq!(polls.get(), 2 * COUNT, "each is polled when it begins and when it is woken");
    }
}
