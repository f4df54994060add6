//! Runs the tasks of a place by priority, all of them in one task of the runtime.
//!
//! Before each choice the kernel makes a pass; then the most urgent task that is ready runs until it waits. There is no
//! preemption: a task keeps the place until it waits, or until one of its requests has made a more urgent one ready.
//! Invariant: a task is polled only if it was made ready, and no task is polled from within another.

use super::kernel::{HubKernel, TaskWaker};
use super::table::{HubTable, name_of};
use super::{HubSystem, HubTask, KernelCounts};
use crate::table::service::Service;
use isles_protocol::hub::TaskId;
use isles_runtime::capture::Bind;
use isles_runtime::service::{InternalSite, OwnedCapture, SerdeCapture, SerdeReturn, call};
use isles_runtime::{Error, ErrorKind, Local, Place, Result, try_join_all};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::poll_fn;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Number of polls of tasks after which the place receives messages.
const POLLS_MAX: u32 = 64;

/// The same in a run of several places, which may have sent some.
const POLLS_MAX_OF_SEVERAL: u32 = 8;

/// A task that has not ended.
type TaskBody<'a, V> = Pin<Box<dyn Future<Output = Result<V>> + 'a>>;

/// The tasks of this place, and the values of those that have ended.
struct HubWorker<'a, V> {
    kernel: Rc<HubKernel>,
    /// Bodies by the number of their task; `None` for a task that is elsewhere or has ended.
    bodies: Vec<Option<(TaskBody<'a, V>, Waker)>>,
    left: usize,
    values: Vec<(String, V)>,
}

impl HubSystem {
    /// Runs the tasks of this place until all have ended; `body` makes the future of each. Returns the value of each
    /// task with its name, in the order of the description.
    ///
    /// A program calls it at every place, as with `everywhere!({ system.run_here(tasks).await? })`. A task that fails
    /// ends the others of its place.
    ///
    /// # Errors
    /// The first error of a task. [`Misused`](ErrorKind::Misused): the tasks of this place run already.
    pub async fn run_here<V, F, B>(&self, body: B) -> Result<Vec<(String, V)>>
    where
        F: Future<Output = Result<V>>,
        B: Fn(HubTask) -> F,
    {
        if self.kernel.has_run.replace(true) {
            let text = "the tasks of a hub system run once at each place";
            return Err(Error::new(ErrorKind::Misused, text));
        }
        let mut worker = HubWorker::new(&self.kernel, body);
        poll_fn(|context| worker.poll(context)).await
    }
}

impl HubSystem {
    /// Runs the tasks of all places, as [`run_here`](HubSystem::run_here) does with those of one; returns the value of
    /// each with its name, and the counters of all kernels.
    ///
    /// `body` runs at each place, so it captures nothing; it gets a copy of `argument`.
    ///
    /// # Errors
    /// The first error of a task, wherever it is; the others end then. A place is dead.
    #[track_caller]
    pub fn run<A, V, F, B>(
        &self,
        argument: A,
        body: B,
    ) -> impl Future<Output = Result<(Vec<(String, V)>, KernelCounts)>>
    where
        A: Serialize + DeserializeOwned + Clone + 'static,
        V: Serialize + DeserializeOwned + 'static,
        F: Future<Output = Result<V>>,
        B: Fn(HubTask, A) -> F + Copy + 'static,
    {
        const {
            assert!(size_of::<B>() == 0, "the body of hub tasks runs at each place: it captures nothing");
        }
        let system = self.clone();
        call::called_at(Location::caller(), async move {
            let here = isles_runtime::here();
            let others = isles_runtime::places().filter(|place| *place != here);
            let calls =
                others.chain([here]).map(|place| system.run_at(place, argument.clone(), body)).collect();
            let mut values: Vec<(String, V)> = try_join_all(calls).await?.into_iter().flatten().collect();
            values.sort_by_key(|(name, _)| system.kernel.read(|node| node.directory().task(name)));
            // Not earlier: tasks of other places may use the hubs of a place whose own tasks have ended.
            let mut counts = KernelCounts::default();
            let asked = isles_runtime::places().map(|place| system.counts_at(place)).collect();
            try_join_all(asked).await?.into_iter().for_each(|kernel| counts.add(kernel));
            Ok((values, counts))
        })
    }

    /// Runs the tasks of one place.
    async fn run_at<A, V, F, B>(&self, place: Place, argument: A, body: B) -> Result<Vec<(String, V)>>
    where
        A: Serialize + DeserializeOwned + Clone + 'static,
        V: Serialize + DeserializeOwned + 'static,
        F: Future<Output = Result<V>>,
        B: Fn(HubTask, A) -> F + Copy + 'static,
    {
        if place == isles_runtime::here() {
            return self.run_here(|task| body(task, argument.clone())).await;
        }
        let seed = (self.clone(), argument);
        let there = move |mut decoded: OwnedCapture<(HubSystem, A)>| async move {
            let (system, argument) = decoded.bind();
            system.run_here(|task| body(task, argument.clone())).await.map(SerdeReturn)
        };
        let captures = SerdeCapture(&seed);
        call::at_there::<_, _, _, _, SerdeReturn<Vec<(String, V)>>>(InternalSite, place, captures, there)
            .await
    }

    /// Returns the counters of the kernel of a place.
    async fn counts_at(&self, place: Place) -> Result<KernelCounts> {
        if place == isles_runtime::here() {
            return Ok(self.counts());
        }
        let there = |mut decoded: OwnedCapture<HubSystem>| async move {
            let system: HubSystem = decoded.bind();
            Ok(SerdeReturn(system.counts()))
        };
        let captures = SerdeCapture(self);
        call::at_there::<_, _, _, _, SerdeReturn<KernelCounts>>(InternalSite, place, captures, there).await
    }
}

impl<'a, V> HubWorker<'a, V> {
    fn new<F, B>(kernel: &Rc<HubKernel>, body: B) -> HubWorker<'a, V>
    where
        F: Future<Output = Result<V>> + 'a,
        B: Fn(HubTask) -> F,
    {
        let tasks: Vec<TaskId> = kernel.read(|node| node.tasks().map(|(task, _)| task).collect());
        let count = kernel.read(|node| node.directory().tasks().len());
        let mut bodies: Vec<Option<(TaskBody<'a, V>, Waker)>> = (0..count).map(|_| None).collect();
        for task in &tasks {
            let waker = Arc::new(TaskWaker { task: *task, woken: Arc::clone(&kernel.woken) });
            let future = body(HubTask::new(Rc::clone(kernel), *task));
            bodies[task.0 as usize] = Some((Box::pin(future), Waker::from(waker)));
            kernel.make_ready(*task);
        }
        HubWorker { kernel: Rc::clone(kernel), bodies, left: tasks.len(), values: Vec::new() }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<(String, V)>>> {
        self.kernel.woken.set_worker(context.waker());
        let kernel = Rc::clone(&self.kernel);
        let _working = WorkingGuard::begin(&kernel);
        let is_alone = Local::with(Local::places) == 1;
        for _ in 0..if is_alone { POLLS_MAX } else { POLLS_MAX_OF_SEVERAL } {
            Local::with(|local| self.kernel.progress(local));
            self.kernel.woken.take().into_iter().for_each(|task| self.kernel.make_ready(task));
            if self.left == 0 {
                let mut values = std::mem::take(&mut self.values);
                let order = |name: &str| self.kernel.read(|node| node.directory().task(name));
                values.sort_by_key(|(name, _)| order(name));
                return Poll::Ready(Ok(values));
            }
            let Some(task) = self.kernel.next_task() else { return Poll::Pending };
            if let Err(error) = self.run(task) {
                return Poll::Ready(Err(error));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Runs a task until it waits or ends.
    fn run(&mut self, task: TaskId) -> Result<()> {
        let Some((body, waker)) = &mut self.bodies[task.0 as usize] else { return Ok(()) };
        let kernel = &self.kernel;
        kernel.count_switches(1);
        kernel.current.set(Some(task));
        kernel.current_waker.set(waker.data());
        kernel.runs_again.set(false);
        let polled = body.as_mut().poll(&mut Context::from_waker(waker));
        kernel.current.set(None);
        kernel.count_switches(1);
        match polled {
            Poll::Pending if kernel.runs_again.take() => kernel.make_ready(task),
            Poll::Pending => {}
            Poll::Ready(result) => {
                self.bodies[task.0 as usize] = None;
                self.left -= 1;
                kernel.end_task(task);
                let name = name_of(kernel, task);
                self.values.push((name, result?));
            }
        }
        Ok(())
    }
}

/// One poll of the worker.
struct WorkingGuard<'a>(&'a HubKernel);

impl<'a> WorkingGuard<'a> {
    fn begin(kernel: &'a HubKernel) -> WorkingGuard<'a> {
        kernel.set_worker_awake(true);
        WorkingGuard(kernel)
    }
}

impl Drop for WorkingGuard<'_> {
    fn drop(&mut self) {
        self.0.set_worker_awake(false);
    }
}

impl<V> Drop for HubWorker<'_, V> {
    fn drop(&mut self) {
        // Dropping a body withdraws its requests; the packets for that leave with the next step of the place.
        let numbered = (0..).zip(&mut self.bodies);
        let given_up: Vec<TaskId> =
            numbered.filter_map(|(task, body)| body.take().map(|_| TaskId(task))).collect();
        Local::try_with(|local| {
            given_up.iter().for_each(|task| self.kernel.end_task(*task));
            HubTable::of(local).note_busy();
        });
    }
}
