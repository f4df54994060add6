//! The fetching form: many small questions travel together, and so do the answers.

use crate::call::{self, Asked};
use crate::capture::Handle;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::PlaceLocal;
use crate::local::Local;
use crate::members::Members;
use crate::part::{InternalSite, PartRef, SerdeCapture, SerdeReturn, replicate};
use crate::place::Place;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;

/// Questions in one message.
const BATCH: usize = 1024;

/// Messages to one place that are not answered.
const ASKED_MAX: usize = 2;

/// Asks places for small values, many in one message: what an `at!` for each would give, in the order of the questions.
pub struct Gatherer<Q: 'static, A: 'static> {
    answer: Rc<Answerer<Q, A>>,
    share: PartRef,
}

/// Answers the questions that a place gets.
struct Answerer<Q, A>(Box<dyn Fn(Vec<Q>) -> Vec<A>>);

/// What is asked of one place, and what it has answered, in the order of the questions to it.
struct Exchange<Q, A> {
    questions: Vec<Q>,
    asked: VecDeque<Asked>,
    answers: Vec<A>,
}

impl<Q, A> Gatherer<Q, A>
where
    Q: Serialize + DeserializeOwned + 'static,
    A: Serialize + DeserializeOwned + 'static,
{
    /// Makes a gatherer whose questions `answer` answers from the instance of `state` at their place.
    ///
    /// `answer` runs at each place, so it captures nothing.
    ///
    /// # Errors
    /// A place is dead.
    #[track_caller]
    pub fn new<S, F>(state: &PlaceLocal<S>, answer: F) -> impl Future<Output = Result<Self>>
    where
        S: 'static,
        F: Fn(&S, Q) -> A + Copy + 'static,
    {
        const {
            assert!(
                size_of::<F>() == 0,
                "the function of a gatherer runs at each place: it captures nothing"
            );
        }
        let caller = Location::caller();
        call::called_at(caller, async move {
            let members = Members::All(Local::with(Local::places));
            let make = move |state: PlaceLocal<S>| {
                let answer_all = move |questions: Vec<Q>| {
                    let state = state.read();
                    questions.into_iter().map(|question| answer(&state, question)).collect()
                };
                Answerer(Box::new(answer_all))
            };
            let here = Rc::new(make(state.clone()));
            let share = replicate(caller, members, state, Rc::clone(&here), make).await?;
            Ok(Gatherer { answer: here, share })
        })
    }

    /// Returns the answer of each question from its place, in the order of `questions`.
    ///
    /// Holds at most 2,048 questions a place that are not answered; the answers are as many as the questions.
    ///
    /// # Errors
    /// A place is dead, or a question could not be answered; the first error.
    #[track_caller]
    pub fn gather(
        &self,
        questions: impl IntoIterator<Item = (Place, Q)>,
    ) -> impl Future<Output = Result<Vec<A>>> {
        call::called_at(Location::caller(), self.ask_all(questions))
    }

    async fn ask_all(&self, questions: impl IntoIterator<Item = (Place, Q)>) -> Result<Vec<A>> {
        let (here, places) = Local::with(|local| (local.here(), local.places()));
        let exchange = || Exchange { questions: Vec::new(), asked: VecDeque::new(), answers: Vec::new() };
        let mut exchanges: Vec<Exchange<Q, A>> = (0..places).map(|_| exchange()).collect();
        // Answers come in order from each place, so the places of the questions say where each belongs.
        let mut order: Vec<u32> = Vec::new();
        for (place, question) in questions {
            let to = &mut exchanges[place.index()];
            order.push(place.id().0);
            to.questions.push(question);
            if to.questions.len() < BATCH {
                continue;
            }
            self.ask(place.id() == here, place, to);
            if to.asked.len() >= ASKED_MAX
                && let Some(asked) = to.asked.pop_front()
            {
                to.answers.extend(asked.answer::<SerdeReturn<Vec<A>>>().await?);
            }
        }
        for (place, to) in crate::place::places().zip(&mut exchanges) {
            if !to.questions.is_empty() {
                self.ask(place.id() == here, place, to);
            }
        }
        let mut answers = Vec::with_capacity(exchanges.len());
        for to in exchanges {
            let mut given = to.answers;
            for asked in to.asked {
                given.extend(asked.answer::<SerdeReturn<Vec<A>>>().await?);
            }
            answers.push(given.into_iter());
        }
        order.into_iter().map(|place| answers[place as usize].next().ok_or_else(too_few)).collect()
    }

    /// Asks the questions for `place`; answers them if that is here.
    fn ask(&self, is_here: bool, place: Place, to: &mut Exchange<Q, A>) {
        let questions = std::mem::take(&mut to.questions);
        if is_here {
            to.answers.extend((self.answer.0)(questions));
            return;
        }
        let captures = (SerdeCapture(self), (SerdeCapture(&questions), ()));
        let asked = call::ask::<_, _, _, _, SerdeReturn<Vec<A>>>(
            InternalSite,
            place,
            captures,
            move |mut landed| async move {
                let (gatherer, (questions, ())): (Gatherer<Q, A>, (Vec<Q>, ())) =
                    crate::capture::Land::bind(&mut landed);
                Ok(SerdeReturn((gatherer.answer.0)(questions)))
            },
        );
        to.asked.push_back(asked);
    }
}

fn too_few() -> Error {
    Error::new(ErrorKind::Undecodable, "a place answered fewer questions than it got")
}

impl<Q: 'static, A: 'static> Serialize for Gatherer<Q, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.share.serialize(serializer)
    }
}

impl<'de, Q: 'static, A: 'static> Deserialize<'de> for Gatherer<Q, A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (share, value) = PartRef::with_value(deserializer)?;
        match value.map(Rc::downcast::<Answerer<Q, A>>) {
            Some(Ok(answer)) => Ok(Gatherer { answer, share }),
            _ => Err(serde::de::Error::custom("the handle's part is not at this place")),
        }
    }
}

impl<Q: 'static, A: 'static> Clone for Gatherer<Q, A> {
    fn clone(&self) -> Self {
        Gatherer { answer: Rc::clone(&self.answer), share: self.share.clone() }
    }
}

impl<Q: 'static, A: 'static> Handle for Gatherer<Q, A> {}
