//! Waiting for several futures of one task, named as in the crate `futures`; and for one at each place.
//!
//! Each of many futures has its own waker, which records its number. So a turn of the task polls the woken futures
//! only, and the number of polls is the number of wakes, however many futures there are.

use crate::error::{Error, Result};
use crate::place::{Place, here, places};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Waits for all `futures`; returns their outputs in the same order.
pub(crate) async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    join_until(futures, |_| false).await
}

/// Waits for all `futures`, or for the first error of one; returns their values in the same order.
///
/// # Errors
/// The error of a future; the others are dropped.
pub async fn try_join_all<T, F: Future<Output = Result<T>>>(futures: Vec<F>) -> Result<Vec<T>> {
    join_until(futures, Result::is_err).await.into_iter().collect()
}

/// Runs an `everywhere!` call: `call` begins the body at one place. The body of the calling place begins last, so that
/// all run concurrently.
///
/// # Errors
/// A single error is returned as it is, several as a list, as from a finish; all bodies have ended by then.
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

/// Waits for both futures, or for the first error of one; returns the value of the second.
///
/// # Errors
/// The error of a future; the other is dropped.
pub async fn try_join<S, T>(
    one: impl Future<Output = Result<S>>,
    other: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut is_over, mut value) = (false, None);
    poll_fn(|context| {
        if !is_over && let Poll::Ready(result) = one.as_mut().poll(context) {
            result?;
            is_over = true;
        }
        if value.is_none()
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            value = Some(result?);
        }
        value.take_if(|_| is_over).map_or(Poll::Pending, |value| Poll::Ready(Ok(value)))
    })
    .await
}

/// Waits for all `futures`, or for the first output that `ends` the wait; returns the outputs so far, in order.
async fn join_until<F: Future>(futures: Vec<F>, ends: impl Fn(&F::Output) -> bool) -> Vec<F::Output> {
    let woken = Arc::new(Woken::all(futures.len()));
    let mut waiting = futures.len();
    let member = |(number, future)| {
        let waker = Waker::from(Arc::new(MemberWaker { number, woken: Arc::clone(&woken) }));
        JoinedFuture { waker, state: FutureState::Waiting(Box::pin(future)) }
    };
    let mut members: Vec<JoinedFuture<F>> = futures.into_iter().enumerate().map(member).collect();
    poll_fn(move |context| {
        let mut is_ended = false;
        for number in woken.take(context.waker()) {
            if let Some(output) = members[number].poll() {
                waiting -= 1;
                is_ended |= ends(output);
            }
        }
        if waiting > 0 && !is_ended {
            return Poll::Pending;
        }
        Poll::Ready(members.drain(..).filter_map(JoinedFuture::output).collect())
    })
    .await
}

/// The futures of a join that must be polled.
struct Woken(Mutex<Calls>);

struct Calls {
    /// Their numbers, without duplicates.
    numbers: Vec<usize>,
    /// True for each number in that list.
    is_noted: Vec<bool>,
    /// The task that waits for all; `None` while it polls.
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

    /// Takes the numbers recorded since the last call; the next one wakes `task`.
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

/// A future, or its output.
enum FutureState<F: Future> {
    Waiting(Pin<Box<F>>),
    Over(F::Output),
}

impl<F: Future> JoinedFuture<F> {
    /// Polls the future; returns its output once, when it ends.
    fn poll(&mut self) -> Option<&F::Output> {
        let FutureState::Waiting(future) = &mut self.state else { return None };
        let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&self.waker)) else {
            return None;
        };
        self.state = FutureState::Over(output);
        match &self.state {
            FutureState::Over(output) => Some(output),
            FutureState::Waiting(_) => None,
        }
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
    use crate::error::Error;
    use std::cell::{Cell, RefCell};

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

    #[test]
    fn the_first_error_ends_a_join_and_drops_the_others() {
        let dropped = std::rc::Rc::new(Cell::new(0));
        struct Noted(std::rc::Rc<Cell<u32>>);
        impl Drop for Noted {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let waits = |number: u32| {
            let noted = Noted(dropped.clone());
            async move {
                let _noted = noted;
                match number {
                    1 => Err(Error::message("the second")),
                    2 => std::future::pending().await,
                    _ => Ok(number),
                }
            }
        };
        let mut context = Context::from_waker(Waker::noop());
        {
            let all = pin!(try_join_all((0..3).map(waits).collect()));
            let Poll::Ready(Err(error)) = all.poll(&mut context) else { panic!("it goes on") };
            assert!(error.to_string().contains("the second"));
        }
        assert_eq!(dropped.get(), 3);
        let pair = pin!(try_join(waits(2), waits(1)));
        assert!(matches!(pair.poll(&mut context), Poll::Ready(Err(_))));
        let pair = pin!(try_join(waits(0), waits(3)));
        assert!(matches!(pair.poll(&mut context), Poll::Ready(Ok(3))));
        let pair = pin!(try_join(waits(0), waits(2)));
        assert!(pair.poll(&mut context).is_pending());
    }
}
