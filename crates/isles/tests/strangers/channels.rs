//! Three places with channels; one of them is hostile and sends arbitrary messages about some of them.
//!
//! The hostile place first runs the same program as the others, so it has handles, slots and values. Then it sends
//! every kind of message, with arbitrary numbers and values, intact or with a changed byte. The messages name channels
//! of its handles, and channels that do not exist. It writes anything into its own ring of values, even after it counts
//! as dead. Invariant: the values of the other channels arrive intact and in order, and each task ends once the hostile
//! place counts as dead.

use isles::prelude::*;
use isles::{Error, Plan, Result};
use isles_runtime::run::{self, MainTask};
use isles_runtime::wire::Writer;
use isles_runtime::{Clock, Local, Step};
use isles_transport::loopback::{LoopbackEndpoint, World};
use isles_transport::random::Random;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId, Region};
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PLACES: u32 = 3;
const HOSTILE: PlaceId = PlaceId(2);

/// The handler of messages about channels.
const CHANNEL: HandlerId = HandlerId(10);

/// Number of kinds of messages about channels.
pub const MESSAGES: usize = 30;

/// Values sent over the channels that are not named.
const VALUES: u64 = 40;

/// Rounds after which a world that is not over counts as hung.
const ROUNDS_MAX: usize = 20_000;

/// The channels that the hostile place names, by home and number there. It has handles of the first three; the others
/// do not exist, the last not even its home.
const NAMED: [[u8; 2]; 7] = [[0, 0], [0, 1], [2, 0], [0, 9], [1, 9], [2, 9], [7, 0]];

/// The room of the channel over which the hostile place alone sends, and the words of its ring: two counts on two lines
/// each, and the values. It is all the shared memory that the first place takes.
const STREAM_ROOM: usize = 8;
const STREAM_RING: Region = Region { place: PlaceId(0), start: 0, words: 32 + STREAM_ROOM as u64 };

/// The words of a ring of the channel that the hostile place has made, where that has room for two values.
const RING_WORDS: u64 = 32 + 2;

/// Messages that places exchange about channels: the names and fields of the runtime's own, in their order.
#[derive(Clone, Debug, Serialize)]
enum ChannelMessage {
    Offer(u64),
    Item,
    Ask(u64, bool),
    Want(u64, bool),
    PutBack,
    Cancel(u64),
    ReturnSlots(u32),
    Close,
    Accepted(u64, u32),
    Refused(u64),
    Full(u64),
    Granted(u64),
    Value(u64),
    Ended(u64),
    Empty(u64),
    Cancelled(u64),
    Faulty(u64, String),
    Slots(u32),
    Recall,
    Closed,
    Settle,
    Settled,
    AskSelect(u64, bool, u64),
    WantSelect(u64, bool, u64),
    Chosen(u64),
    Declined(u64),
    Taken(u64),
    NotTaken(u64),
    Ring(u64, u64),
    RingUsed,
}

/// Any of them: of an operation that may be there, or cannot; with slots that may be there, or cannot.
fn any_message(random: &mut Random) -> ChannelMessage {
    use ChannelMessage::*;
    let number = if random.index(8) == 0 { random.bits() } else { random.index(50) as u64 };
    let slots = if random.index(8) == 0 { random.bits() as u32 } else { random.index(3) as u32 };
    let waits = random.index(2) == 0;
    let all = [
        Offer(number),
        Item,
        Ask(number, waits),
        Want(number, waits),
        PutBack,
        Cancel(number),
        ReturnSlots(slots),
        Close,
        Accepted(number, slots),
        Refused(number),
        Full(number),
        Granted(number),
        Value(number),
        Ended(number),
        Empty(number),
        Cancelled(number),
        Faulty(number, "no reason".to_owned()),
        Slots(slots),
        Recall,
        Closed,
        Settle,
        Settled,
        AskSelect(number, waits, random.index(3) as u64),
        WantSelect(number, waits, random.index(3) as u64),
        Chosen(number),
        Declined(number),
        Taken(number),
        NotTaken(number),
        Ring(if waits { 0 } else { number }, RING_WORDS),
        RingUsed,
    ];
    all[random.index(all.len())].clone()
}

/// Next message of the hostile place.
struct Word {
    message: ChannelMessage,
    to: PlaceId,
    bytes: Vec<u8>,
}

/// Any message about one of the named channels, most with a value of one of two types. Three of four go where they
/// belong: to the home of the first two channels, or from that of the third.
fn any_word(random: &mut Random) -> Word {
    use ChannelMessage::*;
    let message = any_message(random);
    let is_to_home = matches!(
        message,
        Offer(_)
            | Item
            | Ask(..)
            | AskSelect(..)
            | Chosen(_)
            | Want(..)
            | WantSelect(..)
            | Taken(_)
            | NotTaken(_)
            | PutBack
            | Cancel(_)
            | ReturnSlots(_)
            | Close
            | Settled
            | RingUsed
    );
    let belongs = random.index(4) > 0;
    let (to, channel) = match (belongs, is_to_home) {
        (true, true) => (PlaceId(0), NAMED[random.index(2)]),
        (true, false) => (PlaceId(random.index(2) as u32), NAMED[2]),
        (false, _) => (PlaceId(random.index(2) as u32), NAMED[random.index(NAMED.len())]),
    };
    let mut memory = [0; 128];
    let mut writer = Writer::new(&mut memory);
    writer.put_serde(&(channel, &message)).expect("it is short");
    match random.index(4) {
        0 => (),
        1 => writer.put_value("a word").expect("it is short"),
        _ => writer.put_value(&random.bits()).expect("it is short"),
    }
    let len = writer.written();
    assert!(!writer.overflowed(), "{message:?} takes {len} bytes");
    let mut bytes = memory[..len].to_vec();
    // Never one of its channel: the others must not be named.
    if random.index(8) == 0 && len > 2 {
        bytes[2 + random.index(len - 2)] = random.bits() as u8;
    }
    if random.index(16) == 0 {
        bytes.truncate(2 + random.index(len));
    }
    Word { message, to, bytes }
}

/// Every place sends and receives over a channel of the first place and one of the hostile place, which besides sends
/// a stream to the first place.
async fn named(capacity: usize) -> Result<()> {
    let (words, heard) = channel::<String>(capacity);
    let (stream, arrived) = channel::<u64>(STREAM_ROOM);
    let hostile = Place::new(HOSTILE.index()).expect("it exists");
    let (numbers, counted) = channel_at::<u64>(hostile, capacity).await?;
    finish(async {
        for place in places() {
            spawn_at!(place, {
                for number in 0..VALUES {
                    // Refused, or taken by a stranger: whatever comes, the next one.
                    if number % 3 == 0 {
                        let _ = words.send_timeout(number.to_string(), Duration::from_micros(40)).await;
                        let _ = numbers.send_timeout(number, Duration::from_micros(40)).await;
                    } else {
                        let _ = words.send(number.to_string()).await;
                        let _ = numbers.send(number).await;
                    }
                }
            });
            spawn_at!(place, while heard.recv().await.is_ok() {});
            spawn_at!(place, while counted.recv().await.is_ok() {});
        }
        spawn_at!(hostile, {
            for number in 0..10 * VALUES {
                let _ = stream.send(number).await;
            }
        });
        spawn(async move { while arrived.recv().await.is_ok() {} });
        drop((words, heard, numbers, counted, stream));
    })
    .await
}

/// Values go to the second place over a channel there, and back over one here; returns what came back.
async fn others() -> Result<Vec<u64>> {
    let there = here().next();
    let (back, received) = channel::<u64>(1);
    let (forth, values) = channel_at::<u64>(there, 0).await?;
    let mut all = Vec::new();
    finish(async {
        spawn_at!(there, {
            while let Ok(value) = values.recv().await {
                back.send(value).await?;
            }
        });
        drop((back, values));
        spawn(async move {
            for value in 0..VALUES {
                forth.send(value).await?;
            }
            Ok::<_, Error>(())
        });
        while let Ok(value) = received.recv().await {
            all.push(value);
        }
        Ok::<_, Error>(all)
    })
    .await
}

/// The three places with both programs under way.
struct Three {
    world: World,
    locals: Vec<Rc<Local>>,
    roots: [MainTask; 2],
    /// Result of [`others`].
    result: Rc<RefCell<Option<Result<Vec<u64>>>>>,
}

impl Three {
    /// `named` first, for the numbers of its channels.
    fn begin(seed: u64) -> Three {
        let world = World::new(PLACES, Plan::calm(seed));
        let local = |place| {
            let clock = world.clone();
            let clock = Clock::Steps(Box::new(move || Duration::from_micros(clock.step())));
            Local::new(Box::new(world.endpoint(PlaceId(place))), clock, isles_services::services)
        };
        let locals: Vec<Rc<Local>> = (0..PLACES).map(local).collect();
        let result = Rc::new(RefCell::new(None));
        let slot = Rc::clone(&result);
        let other = async move {
            let all = others().await;
            slot.replace(Some(all));
        };
        // Every second world has rendezvous.
        let named = named(if seed.is_multiple_of(2) { 2 } else { 0 });
        let roots =
            locals[0].enter(|| [MainTask::start(&locals[0], named), MainTask::start(&locals[0], other)]);
        Three { world, locals, roots, result }
    }

    fn is_over(&self) -> bool {
        self.roots.iter().all(MainTask::is_over)
    }

    /// Gives each place but `hostile` a turn; if none has anything to do, time passes.
    fn go_on(&self, hostile: Option<PlaceId>) {
        let mut is_busy = false;
        let sound = self.locals.iter().zip(0..).filter(|(_, place)| Some(PlaceId(*place)) != hostile);
        for (local, place) in sound {
            if self.world.choose(&[PlaceId(place)]).is_some() {
                is_busy |= local.enter(|| local.step()) == Step::Busy;
            }
        }
        if !is_busy && !self.world.advance() {
            let is_sound = |place| Some(place) != hostile && self.world.is_alive(place);
            let living = self.locals.iter().filter(|local| is_sound(local.here()));
            if let Some(due) = living.filter_map(|local| local.next_due()).min() {
                self.world.advance_to(due.as_nanos().div_ceil(1_000) as u64);
            }
        }
    }
}

/// Has the hostile place say `bytes` to `to`.
fn say(voice: &LoopbackEndpoint, to: PlaceId, bytes: &[u8]) {
    // A message that finds no room is not sent.
    let _ = voice.send(to, Class::Data, CHANNEL, bytes.len(), &mut |room| {
        room.copy_from_slice(bytes);
        Some(bytes.len())
    });
}

/// Has the hostile place write into its ring, if it has one: into any word, most often the count of values written.
/// Returns whether there is one.
fn scribble(voice: &LoopbackEndpoint, random: &mut Random) -> bool {
    let memory = voice.shared_memory().expect("a world shares memory");
    let Some(words) = memory.view(STREAM_RING) else { return false };
    let index = if random.index(2) == 0 { 0 } else { random.index(words.len()) };
    // Relaxed, as are all words of a world of one thread.
    let before = words[index].load(Ordering::Relaxed);
    let value =
        if random.index(4) == 0 { random.bits() } else { before.wrapping_add(random.index(4) as u64) };
    words[index].store(value, Ordering::Relaxed);
    memory.wake(STREAM_RING.place);
    true
}

/// Outcome of a world with a hostile place.
pub struct Held {
    /// The names of the messages after which the hostile place still lived.
    pub taken: Vec<String>,
    /// `true` if it counted as dead because of what it had written into its ring.
    pub is_ring_refused: bool,
    /// `true` if it wrote into its ring when it counted as dead.
    pub wrote_on: bool,
}

/// A world in which the hostile place says and writes what `seed` draws, and then dies; in every fourth world it only
/// writes.
///
/// # Panics
/// If a task does not end, or something of the channels that were not named is lost.
pub fn hold(seed: u64) -> Held {
    let mut random = Random::new(seed);
    let three = Three::begin(seed);
    let voice = three.world.endpoint(HOSTILE);
    let mut held = Held { taken: Vec::new(), is_ring_refused: false, wrote_on: false };
    let mut last = None;
    let only_writes = seed % 4 == 3;
    let (sound_rounds, mut left) = (random.index(100), 1 + random.index(30));
    for round in 0..ROUNDS_MAX {
        if three.is_over() {
            break;
        }
        if round < sound_rounds {
            three.go_on(None);
            continue;
        }
        let was_alive = three.world.is_alive(HOSTILE);
        let mut wrote = false;
        if was_alive && left == 0 {
            three.world.kill(HOSTILE);
        } else if was_alive && random.index(3) == 0 {
            held.taken.extend(last.take());
            left -= 1;
            if only_writes {
                wrote = scribble(&voice, &mut random);
            } else {
                let word = any_word(&mut random);
                say(&voice, word.to, &word.bytes);
                let text = format!("{:?}", word.message);
                last = text.split('(').next().map(str::to_owned);
            }
        } else if !was_alive && random.index(3) == 0 {
            held.wrote_on |= scribble(&voice, &mut random);
        }
        // It hears what it is told, so that there is room, and does nothing.
        while voice.progress(Inbound::All, &mut |_| ()) > 0 {}
        three.go_on(Some(HOSTILE));
        held.is_ring_refused |= wrote && !three.world.is_alive(HOSTILE);
    }
    if !three.is_over() {
        let waits = three.locals.iter().flat_map(|local| local.enter(|| local.explain()));
        panic!("seed {seed} hangs: {}", waits.collect::<Vec<_>>().join("; "));
    }
    let result = three.result.take().expect("its task is over");
    let all = result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(all, (0..VALUES).collect::<Vec<_>>(), "seed {seed}");
    held
}

impl Drop for Three {
    fn drop(&mut self) {
        for local in &self.locals {
            local.enter(|| run::close(local));
        }
    }
}
