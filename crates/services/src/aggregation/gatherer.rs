//! Aggregated reads: many small questions travel in one message, and so do their answers.

use isles_runtime::capture::Handle;
use isles_runtime::service::call::CallFuture;
use isles_runtime::service::{InternalSite, Members, PartRef, SerdeCapture, SerdeReturn, call, replicate};
use isles_runtime::{Error, ErrorKind, Local, Place, PlaceLocal, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;

/// Number of questions in a message.
const BATCH: usize = 1024;

/// Number of messages to one place that may be unanswered.
const ASKED_MAX: usize = 2;

/// Asks places for small values, many in one message. Returns what an `at!` for each would, in the order of the
/// questions.
pub struct Gatherer<Q: 'static, A: 'static> {
    answer: Rc<QueryHandler<Q, A>>,
    share: PartRef,
}

/// Answers the questions that a place gets.
struct QueryHandler<Q, A>(Box<dyn Fn(Vec<Q>) -> Vec<A>>);

/// Queries to one place.
struct QueryBatch<Q> {
    questions: Vec<Q>,
    /// Index of each question in the order of all.
    numbers: Vec<usize>,
    asked: VecDeque<(Vec<usize>, CallFuture)>,
}

impl<Q> QueryBatch<Q> {
    fn take(&mut self) -> (Vec<Q>, Vec<usize>) {
        let numbers = std::mem::replace(&mut self.numbers, Vec::with_capacity(BATCH));
        (std::mem::replace(&mut self.questions, Vec::with_capacity(BATCH)), numbers)
    }
}

impl<Q, A> Gatherer<Q, A>
where
    Q: Serialize + DeserializeOwned + 'static,
    A: Serialize + DeserializeOwned + 'static,
{
    /// Makes a gatherer; `answer` answers each question from the instance of `state` at its place.
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
                QueryHandler(Box::new(answer_all))
            };
            let here = Rc::new(make(state.clone()));
            let share = replicate(caller, members, state, Rc::clone(&here), make).await?;
            Ok(Gatherer { answer: here, share })
        })
    }

    /// Returns the answer of each question from its place, in the order of `questions`.
    ///
    /// Holds at most 3,072 unanswered questions for each place, and all answers.
    ///
    /// # Errors
    /// A place is dead, or a question could not be answered; the first error.
    #[track_caller]
    pub fn gather(
        &self,
        questions: impl IntoIterator<Item = (Place, Q)>,
    ) -> impl Future<Output = Result<Vec<A>>> {
        call::called_at(Location::caller(), async move {
            let mut answers: Vec<Option<A>> = Vec::new();
            let asked = self.ask_all(questions, |number, answer| {
                if answers.len() <= number {
                    answers.resize_with(number + 1, || None);
                }
                answers[number] = Some(answer);
            });
            asked.await?;
            answers.into_iter().collect::<Option<Vec<A>>>().ok_or_else(too_few)
        })
    }

    /// As [`Gatherer::gather`], but stores the answers in `into`.
    ///
    /// # Errors
    /// As for [`Gatherer::gather`]; [`Misused`](ErrorKind::Misused): there are more questions than `into` has elements.
    #[track_caller]
    pub fn gather_into(
        &self,
        questions: impl IntoIterator<Item = (Place, Q)>,
        into: &mut [A],
    ) -> impl Future<Output = Result<()>> {
        call::called_at(Location::caller(), async move {
            let len = into.len();
            let asked = self.ask_all(questions, |number, answer| {
                if let Some(slot) = into.get_mut(number) {
                    *slot = answer;
                }
            });
            let count = asked.await?;
            let text = || format!("{count} answers, but room for only {len}");
            if count <= len { Ok(()) } else { Err(Error::new(ErrorKind::Misused, text())) }
        })
    }

    /// Asks all questions, and passes each answer with the index of its question to `take`; returns the number of
    /// questions.
    async fn ask_all(
        &self,
        questions: impl IntoIterator<Item = (Place, Q)>,
        mut take: impl FnMut(usize, A),
    ) -> Result<usize> {
        let (here, places) = Local::with(|local| (local.here(), local.places()));
        let exchange = || QueryBatch { questions: Vec::new(), numbers: Vec::new(), asked: VecDeque::new() };
        let mut exchanges: Vec<QueryBatch<Q>> = (0..places).map(|_| exchange()).collect();
        let mut count = 0;
        for (place, question) in questions {
            let to = &mut exchanges[place.index()];
            to.questions.push(question);
            to.numbers.push(count);
            count += 1;
            if to.questions.len() < BATCH {
                continue;
            }
            self.ask(place.id() == here, place, to, &mut take)?;
            if to.asked.len() > ASKED_MAX
                && let Some((numbers, asked)) = to.asked.pop_front()
            {
                answered(numbers, asked.answer::<SerdeReturn<Vec<A>>>().await?, &mut take)?;
            }
        }
        for (place, to) in isles_runtime::places().zip(&mut exchanges) {
            if !to.questions.is_empty() {
                self.ask(place.id() == here, place, to, &mut take)?;
            }
        }
        for (numbers, asked) in exchanges.into_iter().flat_map(|to| to.asked) {
            answered(numbers, asked.answer::<SerdeReturn<Vec<A>>>().await?, &mut take)?;
        }
        Ok(count)
    }

    /// Asks the questions for `place`; answers them if that is here.
    fn ask(
        &self,
        is_here: bool,
        place: Place,
        to: &mut QueryBatch<Q>,
        take: &mut impl FnMut(usize, A),
    ) -> Result<()> {
        let (questions, numbers) = to.take();
        if is_here {
            return answered(numbers, (self.answer.0)(questions), take);
        }
        let captures = (SerdeCapture(self), (SerdeCapture(&questions), ()));
        let asked = call::ask::<_, _, _, _, SerdeReturn<Vec<A>>>(
            InternalSite,
            place,
            captures,
            move |mut decoded| async move {
                let (gatherer, (questions, ())): (Gatherer<Q, A>, (Vec<Q>, ())) =
                    isles_runtime::capture::Bind::bind(&mut decoded);
                Ok(SerdeReturn((gatherer.answer.0)(questions)))
            },
        );
        to.asked.push_back((numbers, asked));
        Ok(())
    }
}

/// Passes the answers of a message to `take`.
fn answered<A>(numbers: Vec<usize>, given: Vec<A>, take: &mut impl FnMut(usize, A)) -> Result<()> {
    if numbers.len() != given.len() {
        return Err(too_few());
    }
    numbers.into_iter().zip(given).for_each(|(number, answer)| take(number, answer));
    Ok(())
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
        match value.map(Rc::downcast::<QueryHandler<Q, A>>) {
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
