//! Three places with channels, one of which says anything at all about some of these besides.
//!
//! For a while the hostile place runs the same program as the others, so it has handles, slots and values. From then
//! on it says every message that there is, with any numbers and values, whole or with a byte changed. It names the
//! channels that it has handles of, and such as do not exist. Invariant: what goes over the other channels arrives
//! whole and in order, and each task ends once the hostile place counts as dead.

use isles::prelude::*;
use isles::{Error, Plan, Result};
use isles_runtime::run::{self, MainTask};
use isles_runtime::wire::Writer;
use isles_runtime::{Clock, Local, Step};
use isles_transport::loopback::{LoopbackEndpoint, World};
use isles_transport::random::Random;
use isles_transport::{Class, Endpoint, HandlerId, Inbound, PlaceId};
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const PLACES: u32 = 3;
const HOSTILE: PlaceId = PlaceId(2);

/// The handler of messages about channels.
const CHANNEL: HandlerId = HandlerId(10);

/// How many kinds of messages about channels there are.
pub const MESSAGES: usize = 28;

/// What goes over the channels that are not named.
const VALUES: u64 = 40;

/// Rounds after which a world that is not over counts as hung.
const ROUNDS_MAX: usize = 20_000;

/// The channels that the hostile place names, by home and number there. It has handles of the first two; the others do
/// not exist, the last not even its home.
const NAMED: [[u8; 2]; 6] = [[0, 0], [2, 0], [0, 9], [1, 9], [2, 9], [7, 0]];

/// What places say to each other about channels: the names and fields of the runtime's own, in their order.
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
    AskAs(u64, bool, u64),
    WantAs(u64, bool, u64),
    Chosen(u64),
    Declined(u64),
    Taken(u64),
    NotTaken(u64),
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
        AskAs(number, waits, random.index(3) as u64),
        WantAs(number, waits, random.index(3) as u64),
        Chosen(number),
        Declined(number),
        Taken(number),
        NotTaken(number),
    ];
    all[random.index(all.len())].clone()
}

/// What the hostile place says next.
struct Word {
    message: ChannelMessage,
    to: PlaceId,
    bytes: Vec<u8>,
}

/// Any message about one of the named channels, most with a value of one of two types. Three of four go where they
/// belong: to the home of the first channel, or from that of the second.
fn any_word(random: &mut Random) -> Word {
    use ChannelMessage::*;
    let message = any_message(random);
    let is_to_home = matches!(
        message,
        Offer(_)
            | Item
            | Ask(..)
            | AskAs(..)
            | Chosen(_)
            | Want(..)
            | WantAs(..)
            | Taken(_)
            | NotTaken(_)
            | PutBack
            | Cancel(_)
            | ReturnSlots(_)
            | Close
            | Settled
    );
    let belongs = random.index(4) > 0;
    let (to, channel) = match (belongs, is_to_home) {
        (true, true) => (PlaceId(0), NAMED[0]),
        (true, false) => (PlaceId(random.index(2) as u32), NAMED[1]),
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
    // Never one of its channel: the others are not to be named.
    if random.index(8) == 0 && len > 2 {
        bytes[2 + random.index(len - 2)] = random.bits() as u8;
    }
    if random.index(16) == 0 {
        bytes.truncate(2 + random.index(len));
    }
    Word { message, to, bytes }
}

/// Every place sends and receives over two channels; it makes the first one of the first place, and of the hostile one.
async fn named(capacity: usize) -> Result<()> {
    let (words, heard) = channel::<String>(capacity);
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
        drop((words, heard, numbers, counted));
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
    /// What came back in [`others`].
    result: Rc<RefCell<Option<Result<Vec<u64>>>>>,
}

impl Three {
    /// `named` first, for the numbers of its channels.
    fn begin(seed: u64) -> Three {
        let world = World::new(PLACES, Plan::calm(seed));
        let local = |place| {
            let clock = world.clone();
            let clock = Clock::Steps(Box::new(move || Duration::from_micros(clock.step())));
            Local::new(Box::new(world.endpoint(PlaceId(place))), clock)
        };
        let locals: Vec<Rc<Local>> = (0..PLACES).map(local).collect();
        let result = Rc::new(RefCell::new(None));
        let told = Rc::clone(&result);
        let other = async move {
            let all = others().await;
            told.replace(Some(all));
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
    // What finds no room is not said.
    let _ = voice.send(to, Class::Data, CHANNEL, bytes.len(), &mut |room| {
        room.copy_from_slice(bytes);
        Some(bytes.len())
    });
}

/// A world in which the hostile place says what `seed` draws, and then dies; returns the names of the messages after
/// which it still lived.
///
/// # Panics
/// If a task does not end, or something of the channels that were not named is lost.
pub fn hold(seed: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let three = Three::begin(seed);
    let voice = three.world.endpoint(HOSTILE);
    let (mut taken, mut last) = (Vec::new(), None);
    let (sound_rounds, mut left) = (random.index(100), 1 + random.index(30));
    for round in 0..ROUNDS_MAX {
        if three.is_over() {
            break;
        }
        if round < sound_rounds {
            three.go_on(None);
            continue;
        }
        if left == 0 {
            three.world.kill(HOSTILE);
        } else if three.world.is_alive(HOSTILE) && random.index(3) == 0 {
            taken.extend(last.take());
            let word = any_word(&mut random);
            say(&voice, word.to, &word.bytes);
            let text = format!("{:?}", word.message);
            last = text.split('(').next().map(str::to_owned);
            left -= 1;
        }
        // It hears what it is told, so that there is room, and does nothing.
        while voice.progress(Inbound::All, &mut |_| ()) > 0 {}
        three.go_on(Some(HOSTILE));
    }
    if !three.is_over() {
        let waits = three.locals.iter().flat_map(|local| local.enter(|| local.explain()));
        panic!("seed {seed} hangs: {}", waits.collect::<Vec<_>>().join("; "));
    }
    let result = three.result.take().expect("its task is over");
    let all = result.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(all, (0..VALUES).collect::<Vec<_>>(), "seed {seed}");
    taken
}

impl Drop for Three {
    fn drop(&mut self) {
        for local in &self.locals {
            local.enter(|| run::close(local));
        }
    }
}
