//! The builder of a pipeline's stages: a chain in which each stage reads the output of an earlier one.

use super::ports::{PortPlan, Ports};
use super::{AnyStage, Fallible, Mapped, MappedAsync, Routing, Stateful, StatefulAsync};
use isles_runtime::capture::CanSend;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next chain; branches recognise their chain by its number.
static NEXT_CHAIN: AtomicU64 = AtomicU64::new(0);

/// Stages in the order in which they run, and the ports between them.
pub(in crate::pipeline) struct Chain {
    pub(in crate::pipeline) stages: Vec<NamedStage>,
    pub(in crate::pipeline) ports: Vec<PortPlan>,
    number: u64,
}

/// A stage with its name.
pub(in crate::pipeline) struct NamedStage {
    pub(in crate::pipeline) name: &'static str,
    pub(in crate::pipeline) stage: Box<dyn AnyStage>,
    /// Maximum number of replicas.
    pub(in crate::pipeline) replicas: usize,
}

impl Chain {
    /// Adds a stage that reads `input` and writes a new port of `T`; returns the number of that port, which `make`
    /// gets.
    fn add<T: CanSend>(
        &mut self,
        name: &'static str,
        input: usize,
        make: impl FnOnce(usize) -> Box<dyn AnyStage>,
    ) -> usize {
        let output = self.add_port::<T>();
        self.ports[input].read_by = self.stages.len();
        self.stages.push(NamedStage { name, stage: make(output), replicas: 1 });
        output
    }

    /// Adds a port that the next stage to be added writes.
    fn add_port<T: CanSend>(&mut self) -> usize {
        self.ports.push(PortPlan::of::<T>(self.stages.len() + 1));
        self.ports.len() - 1
    }
}

/// The stages of a pipeline from items of `In` to results of `Out`, one result for each item.
///
/// A stage has a name, takes one value and returns one. A stage without state is a function of the value; a stateful
/// one is a function of state and value, and only the state is sent when the stage moves to another place. Cycles are
/// impossible: a stage reads only outputs of earlier stages.
pub struct Stages<In, Out> {
    chain: Chain,
    /// The port of the result.
    output: usize,
    types: PhantomData<fn(In) -> Out>,
}

impl<In: CanSend> Stages<In, In> {
    /// Makes an empty chain, whose result is the item.
    pub fn new() -> Self {
        let number = NEXT_CHAIN.fetch_add(1, Ordering::Relaxed); // relaxed: only distinct
        let chain = Chain { stages: Vec::new(), ports: vec![PortPlan::of::<In>(0)], number };
        Stages { chain, output: 0, types: PhantomData }
    }
}

impl<In: CanSend> Default for Stages<In, In> {
    fn default() -> Self {
        Stages::new()
    }
}

impl<In: CanSend, Out: CanSend> Stages<In, Out> {
    /// Adds a stage without state.
    pub fn map<T: CanSend>(self, name: &'static str, function: impl Fn(Out) -> T + 'static) -> Stages<In, T> {
        self.stage(name, |input, output| Box::new(Mapped::new(function, input, output)))
    }

    /// Adds a stage without state that may fail; its first error ends the pipeline and names the stage.
    pub fn try_map<T: CanSend>(
        self,
        name: &'static str,
        function: impl Fn(Out) -> crate::Result<T> + 'static,
    ) -> Stages<In, T> {
        self.stage(name, |input, output| Box::new(Fallible::new(function, input, output)))
    }

    /// Adds an async stage without state.
    pub fn map_async<T: CanSend>(
        self,
        name: &'static str,
        function: impl AsyncFn(Out) -> T + 'static,
    ) -> Stages<In, T> {
        self.stage(name, |input, output| Box::new(MappedAsync::new(function, input, output)))
    }

    /// Adds a stage with a state that is kept from item to item. It starts as `state`, and moves with the stage.
    pub fn stateful<S: CanSend, T: CanSend>(
        self,
        name: &'static str,
        state: S,
        function: impl Fn(&mut S, Out) -> T + 'static,
    ) -> Stages<In, T> {
        self.stage(name, |input, output| Box::new(Stateful::new(state, function, input, output)))
    }

    /// Adds an async stage with a state; otherwise as [`Stages::stateful`].
    pub fn stateful_async<S: CanSend, T: CanSend>(
        self,
        name: &'static str,
        state: S,
        function: impl AsyncFn(&mut S, Out) -> T + 'static,
    ) -> Stages<In, T> {
        self.stage(name, |input, output| Box::new(StatefulAsync::new(state, function, input, output)))
    }

    /// Adds a stage that makes two values of one, and a branch of stages for each of them, up to [`Branches::join`].
    ///
    /// Both branches are in one sequence of stages, the left one first. Different items can be in both at once; a
    /// single item passes one branch after the other, carrying the value of the other branch along.
    ///
    /// # Panics
    /// If a branch does not extend the stages that it gets.
    pub fn branch<L: CanSend, R: CanSend, A: CanSend, B: CanSend>(
        mut self,
        name: &'static str,
        function: impl Fn(Out) -> (L, R) + 'static,
        left: impl FnOnce(Stages<In, L>) -> Stages<In, A>,
        right: impl FnOnce(Stages<In, R>) -> Stages<In, B>,
    ) -> Branches<In, A, B> {
        let (number, input) = (self.chain.number, self.output);
        let second = self.chain.add_port::<R>();
        let split = move |first| {
            let step = move |ports: &mut Ports| {
                let (left, right) = function(ports.take(input));
                ports.put(first, left);
                ports.put(second, right);
            };
            Routing::boxed(step)
        };
        let first = self.chain.add::<L>(name, input, split);
        let continued = |chain: Chain| {
            assert_eq!(
                chain.number, number,
                "a branch of `{name}` must continue the stages that it is given"
            );
            chain
        };
        let left = left(Stages { chain: self.chain, output: first, types: PhantomData });
        let right = right(Stages { chain: continued(left.chain), output: second, types: PhantomData });
        Branches { chain: continued(right.chain), left: left.output, right: right.output, types: PhantomData }
    }

    /// Allows up to `replicas` replicas of the last stage, each at a place of its own, used if there are enough places
    /// and the stage is the slowest. Results still arrive in the order of the items.
    ///
    /// Neighbouring stages that allow it are replicated together. This extends the pipelines of J. Jahn et al.
    ///
    /// # Panics
    /// If `replicas` is 0, there is no stage, or the stage has a state.
    pub fn replicated(mut self, replicas: usize) -> Self {
        let last = self.chain.stages.last_mut().expect("a stage comes before `replicated`");
        assert!(replicas > 0, "stage `{}` has at least one replica", last.name);
        assert!(
            last.stage.share().is_some(),
            "stage `{}` has a state, so it cannot be replicated",
            last.name
        );
        last.replicas = replicas;
        self
    }

    fn stage<T: CanSend>(
        mut self,
        name: &'static str,
        make: impl FnOnce(usize, usize) -> Box<dyn AnyStage>,
    ) -> Stages<In, T> {
        let input = self.output;
        let output = self.chain.add::<T>(name, input, |output| make(input, output));
        Stages { chain: self.chain, output, types: PhantomData }
    }

    /// Returns the complete chain, with the result port read at its end.
    pub(in crate::pipeline) fn finished(mut self) -> Chain {
        self.chain.ports[self.output].read_by = self.chain.stages.len();
        self.chain
    }
}

/// The two open branches of a pipeline after [`Stages::branch`].
pub struct Branches<In, A, B> {
    chain: Chain,
    left: usize,
    right: usize,
    types: PhantomData<fn(In) -> (A, B)>,
}

impl<In: CanSend, A: CanSend, B: CanSend> Branches<In, A, B> {
    /// Adds a stage that combines the values of both branches.
    pub fn join<T: CanSend>(
        mut self,
        name: &'static str,
        function: impl Fn(A, B) -> T + 'static,
    ) -> Stages<In, T> {
        let (left, right) = (self.left, self.right);
        self.chain.ports[right].read_by = self.chain.stages.len();
        let join = move |output| {
            let step = move |ports: &mut Ports| {
                let value = function(ports.take(left), ports.take(right));
                ports.put(output, value);
            };
            Routing::boxed(step)
        };
        let output = self.chain.add::<T>(name, left, join);
        Stages { chain: self.chain, output, types: PhantomData }
    }
}
