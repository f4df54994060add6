//! Type-erased stages, which a group runs, saves and restores.

pub(in crate::pipeline) mod ports;
pub(in crate::pipeline) mod stages;

use crate::{Error, ErrorKind, Result};
use isles_runtime::capture::CanSend;
use isles_runtime::wire::{from_bytes, to_bytes};
use ports::Ports;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;

/// The rest of a step that may wait.
pub(in crate::pipeline) type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A stage, which takes a value from its input port and puts one into its output port.
pub(in crate::pipeline) trait AnyStage {
    /// Runs the stage for one item. Returns the rest of the step if the stage may wait.
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>>;

    /// Returns a stage with the same function for another group of this place; `None` if the stage has a state.
    fn share(&self) -> Option<Box<dyn AnyStage>> {
        None
    }

    /// Returns the state as bytes; `None` if the stage has none.
    fn save(&self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Replaces the state by one that [`AnyStage::save`] returned.
    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let _ = bytes;
        Ok(())
    }
}

/// A stage without state whose function accesses the ports itself.
pub(in crate::pipeline) struct Routing<F>(Rc<F>);

impl<F: Fn(&mut Ports) + 'static> Routing<F> {
    pub(in crate::pipeline) fn boxed(function: F) -> Box<dyn AnyStage> {
        Box::new(Routing(Rc::new(function)))
    }
}

impl<F: Fn(&mut Ports) + 'static> AnyStage for Routing<F> {
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>> {
        (self.0)(ports);
        Ok(None)
    }

    fn share(&self) -> Option<Box<dyn AnyStage>> {
        Some(Box::new(Routing(Rc::clone(&self.0))))
    }
}

/// The common part of all stages with one input and one output.
struct StageIo<F, T> {
    function: Rc<F>,
    input: usize,
    output: usize,
    takes: PhantomData<fn(T)>,
}

impl<F, T: 'static> StageIo<F, T> {
    fn new(function: F, input: usize, output: usize) -> Self {
        StageIo { function: Rc::new(function), input, output, takes: PhantomData }
    }

    fn share(&self) -> Self {
        let StageIo { function, input, output, .. } = self;
        StageIo { function: Rc::clone(function), input: *input, output: *output, takes: PhantomData }
    }

    fn take(&self, ports: &mut Ports) -> T {
        ports.take(self.input)
    }
}

macro_rules! stateless {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub(in crate::pipeline) struct $name<F, T>(StageIo<F, T>);

        impl<F, T: 'static> $name<F, T> {
            pub(in crate::pipeline) fn new(function: F, input: usize, output: usize) -> Self {
                $name(StageIo::new(function, input, output))
            }

            fn shared(&self) -> Option<Box<dyn AnyStage>>
            where
                Self: AnyStage + 'static,
            {
                Some(Box::new($name(self.0.share())))
            }
        }
    };
}

stateless! {
    /// A function.
    Mapped
}
stateless! {
    /// A function that may fail.
    Fallible
}
stateless! {
    /// A function that may wait.
    MappedAsync
}

impl<T: 'static, U: 'static, F: Fn(T) -> U + 'static> AnyStage for Mapped<F, T> {
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>> {
        let value = (self.0.function)(self.0.take(ports));
        ports.put(self.0.output, value);
        Ok(None)
    }

    fn share(&self) -> Option<Box<dyn AnyStage>> {
        self.shared()
    }
}

impl<T: 'static, U: 'static, F: Fn(T) -> Result<U> + 'static> AnyStage for Fallible<F, T> {
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>> {
        let value = (self.0.function)(self.0.take(ports))?;
        ports.put(self.0.output, value);
        Ok(None)
    }

    fn share(&self) -> Option<Box<dyn AnyStage>> {
        self.shared()
    }
}

impl<T: 'static, U: 'static, F: AsyncFn(T) -> U + 'static> AnyStage for MappedAsync<F, T> {
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>> {
        Ok(Some(Box::pin(async move {
            let value = (self.0.function)(self.0.take(ports)).await;
            ports.put(self.0.output, value);
            Ok(())
        })))
    }

    fn share(&self) -> Option<Box<dyn AnyStage>> {
        self.shared()
    }
}

/// A function of a state and a value.
pub(in crate::pipeline) struct Stateful<S, F, T> {
    state: S,
    io: StageIo<F, T>,
}

/// An async function of a state and a value.
pub(in crate::pipeline) struct StatefulAsync<S, F, T>(Stateful<S, F, T>);

impl<S: CanSend, F, T: 'static> Stateful<S, F, T> {
    pub(in crate::pipeline) fn new(state: S, function: F, input: usize, output: usize) -> Self {
        Stateful { state, io: StageIo::new(function, input, output) }
    }

    fn saved(&self) -> Result<Option<Vec<u8>>> {
        to_bytes(&self.state).map(Some)
    }

    fn restored(&mut self, bytes: &[u8]) -> Result<()> {
        let state = from_bytes(bytes);
        self.state = state.map_err(|fault| Error::new(ErrorKind::Undecodable, fault.to_string()))?;
        Ok(())
    }
}

impl<S: CanSend, F, T: 'static> StatefulAsync<S, F, T> {
    pub(in crate::pipeline) fn new(state: S, function: F, input: usize, output: usize) -> Self {
        StatefulAsync(Stateful::new(state, function, input, output))
    }
}

impl<S: CanSend, T: 'static, U: 'static, F: Fn(&mut S, T) -> U> AnyStage for Stateful<S, F, T> {
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>> {
        let item = self.io.take(ports);
        let value = (self.io.function)(&mut self.state, item);
        ports.put(self.io.output, value);
        Ok(None)
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.saved()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.restored(bytes)
    }
}

impl<S: CanSend, T: 'static, U: 'static, F: AsyncFn(&mut S, T) -> U> AnyStage for StatefulAsync<S, F, T> {
    fn step<'a>(&'a mut self, ports: &'a mut Ports) -> Result<Option<StepFuture<'a>>> {
        let Stateful { state, io } = &mut self.0;
        Ok(Some(Box::pin(async move {
            let item = io.take(ports);
            let value = (io.function)(state, item).await;
            ports.put(io.output, value);
            Ok(())
        })))
    }

    fn save(&self) -> Result<Option<Vec<u8>>> {
        self.0.saved()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.restored(bytes)
    }
}
