//! One place among peers that say anything at all.
//!
//! Everything that a place reads from a peer comes through here: heads of messages, captures, answers, reports of
//! finishes, steps of collectives and messages of members, values of channels, registrations and reports of phasers,
//! counts of handles, the end of the run. It is a file of its own because two programs feed it: the test beside it with
//! invented bytes, and the fuzz target `messages` with bytes that a fuzzer looks for. It checks no answer: a place that
//! goes on working has passed.
//!
//! The place runs a small program in a simulated world whose other places are bare endpoints. What the places of that
//! world say to each other when all of them are sound is the *stock*: genuine messages, with entries, finishes and
//! slots that exist. An input is a list of instructions: bytes as they stand, or a piece of the stock with a few bytes
//! changed, from a peer of its choice.

use isles::prelude::*;
use isles::{Error, Result};
use isles_runtime::run::{self, MainTask};
use isles_runtime::{Clock, Local, Step};
use isles_transport::loopback::{LoopbackEndpoint, Plan, World};
use isles_transport::{
    Class, Endpoint, HandlerId, Inbound, Lending, MappedMemory, Multicast, PlaceId, SendError, SpanSink,
    WorkModel,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

const PLACES: u32 = 4;

/// Steps after which a place that is still busy with one message counts as hung.
const STEPS_MAX: usize = 100_000;

/// Most pieces that are kept, so that one byte of the input can name each.
const STOCK_MAX: usize = 128;

/// Bits of the first byte of an instruction; the lower five are the number of a handler.
const FROM_STOCK: u8 = 0x80;
const AS_BLOCK: u8 = 0x40;
const CONTROL: u8 = 0x20;

/// The source that stands for the death of a peer.
const DEATH: u8 = 0xff;

/// One message that a peer can send.
#[derive(Clone, PartialEq)]
struct Piece {
    class: Class,
    handler: u16,
    is_block: bool,
    bytes: Vec<u8>,
}

/// The program: some of everything that sends messages. None of it is answered, unless by the input.
async fn program() -> Result<()> {
    let there = here().next();
    finish(async {
        let (text, numbers) = (String::from("words"), vec![1.5_f64; 3]);
        let pairs: BTreeMap<String, Option<(u8, i64)>> = [("one".to_owned(), Some((1, -1)))].into();
        spawn(async move {
            at!(there, (numbers.iter().sum::<f64>() * 2.0, text.len())).await?;
            let long = vec![7_u32; 3000];
            at!(there, long.clone()).await?;
            Ok::<_, Error>(())
        });
        spawn(async move {
            at!(there, pairs.keys().next().cloned()).await?;
            let _ = at!(there, Err::<(), _>(Error::message("refused"))?).await;
            Ok::<_, Error>(())
        });
        let counter = Counter::new();
        let global = Global::new(5_u32);
        spawn_at!(there, drop((counter, global)));
        let phaser = Phaser::new();
        spawn_at!(there, {
            phaser.advance().await?;
        });
        let (sender, receiver) = channel::<String>(2);
        let (calls, numbers) = channel::<u64>(0);
        spawn_at!(there, {
            for word in ["one", "two", "three"] {
                sender.send(word.to_owned()).await?;
            }
            numbers.recv().await?;
            sender.close();
        });
        spawn(async move {
            receiver.recv().await?;
            calls.send(7).await?;
            while receiver.recv().await.is_ok() {}
            Ok::<_, Error>(())
        });
        for place in places() {
            spawn_at!(place, collectives().await?);
            spawn_at!(place, messages().await?);
        }
        spawn(async { PlaceLocal::new(|| 1_u8).await.map(drop) });
        spawn(async { Replicated::new(vec![String::from("shared")]).await.map(drop) });
    })
    .await
}

/// Runs collectives as a member of a team; every place calls this.
async fn collectives() -> Result<()> {
    let team = Team::world();
    let mut sums = [1_u64; 8];
    team.all_reduce_slice(&mut sums, |a, b| a + b).await?;
    team.broadcast(0, Some(String::from("to all"))).await?;
    team.split(here().index() % 2, 0).await?.barrier().await
}

/// Sends messages to the next member of a team: short, and too long to go at once; every place calls this.
async fn messages() -> Result<()> {
    let team = Team::world();
    let (next, previous) = ((team.rank() + 1) % team.size(), (team.rank() + team.size() - 1) % team.size());
    team.send(next, &3_u64).await?;
    team.recv_any::<u64>().await?;
    let (sent, mut one, mut other) = ([5_u32; 2_000], [0; 2_000], [0; 2_000]);
    team.neighbor_exchange_slices(&[next, previous], &[&sent, &sent], &mut [&mut one, &mut other]).await?;
    team.send_recv::<_, Vec<u32>>(next, &vec![8_u32; 3_000], previous).await.map(drop)
}

/// The place, its program under way, and its peers.
struct Conversation {
    world: World,
    local: Rc<Local>,
    peers: Vec<LoopbackEndpoint>,
    _root: MainTask,
}

impl Conversation {
    /// Begins one, up to the moment when the place waits for its peers.
    fn begin() -> Conversation {
        let world = World::new(PLACES, Plan::calm(1));
        let local = Local::new(Box::new(world.endpoint(PlaceId(0))), clock(&world), isles_services::services);
        let peers = (1..PLACES).map(|place| world.endpoint(PlaceId(place))).collect();
        let _root = local.enter(|| MainTask::start(&local, program()));
        let conversation = Conversation { world, local: Rc::clone(&local), peers, _root };
        conversation.settle();
        conversation
    }

    /// Runs the place until it waits.
    fn settle(&self) {
        for _ in 0..STEPS_MAX {
            self.world.choose(&[PlaceId(0)]);
            if self.local.enter(|| self.local.step()) == Step::Idle {
                return;
            }
        }
        panic!("the place is still busy after {STEPS_MAX} steps");
    }

    /// Has the peers take in what the place has said, so that it finds room.
    fn hear(&self) {
        for (peer, place) in self.peers.iter().zip(1..) {
            self.world.choose(&[PlaceId(place)]);
            while peer.progress(Inbound::All, &mut |_| ()) > 0 {}
        }
    }

    /// Has peer `source` say something.
    fn say(&self, source: usize, piece: &Piece) {
        let (peer, len) = (&self.peers[source % self.peers.len()], piece.bytes.len());
        let handler = HandlerId(piece.handler);
        let limits = peer.limits();
        let inline_max =
            if piece.class == Class::Data { limits.inline_bytes_max } else { limits.control_bytes_max };
        // A peer that is dead says nothing; the rest always has room, for the place takes in what it gets.
        let _ = if piece.is_block || len > inline_max {
            peer.send_block(PlaceId(0), piece.class, handler, len, &mut |room| {
                room.copy_from_slice(&piece.bytes);
            })
        } else {
            peer.send(PlaceId(0), piece.class, handler, len, &mut |room| {
                room.copy_from_slice(&piece.bytes);
                Some(len)
            })
        };
        self.settle();
    }

    /// Returns `true` if the place still runs tasks and finishes of its own.
    fn works(&self) -> bool {
        let program = async { finish(async { spawn(async {}) }).await };
        let root = self.local.enter(|| MainTask::start(&self.local, program));
        self.settle();
        root.is_over()
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.local.enter(|| run::close(&self.local));
    }
}

/// Stock of genuine messages: all that places exchange when every one of them runs the program as it should.
struct Stock(Vec<Piece>);

impl Stock {
    /// The same world as in a [`Conversation`], so that finishes, slots and teams have the same names.
    fn gather() -> Stock {
        let world = World::new(PLACES, Plan::calm(1));
        let said = Rc::new(RefCell::new(Vec::new()));
        let places: Vec<Rc<Local>> =
            (0..PLACES).map(|place| recorded(&world, PlaceId(place), &said)).collect();
        let root = places[0].enter(|| MainTask::start(&places[0], program()));
        for _ in 0..STEPS_MAX {
            if root.is_over() {
                break;
            }
            for (local, place) in places.iter().zip(0..) {
                world.choose(&[PlaceId(place)]);
                local.enter(|| local.step());
            }
        }
        for local in &places {
            local.enter(|| run::close(local));
        }
        assert!(root.is_over(), "the program of the stock stands still");
        Stock(said.take())
    }
}

/// A place whose messages are recorded.
fn recorded(world: &World, place: PlaceId, said: &Rc<RefCell<Vec<Piece>>>) -> Rc<Local> {
    let endpoint = Recorder { endpoint: world.endpoint(place), said: Rc::clone(said) };
    Local::new(Box::new(endpoint), clock(world), isles_services::services)
}

fn clock(world: &World) -> Clock {
    let world = world.clone();
    Clock::Steps(Box::new(move || Duration::from_micros(world.step())))
}

/// An endpoint that keeps a copy of what it sends.
struct Recorder {
    endpoint: LoopbackEndpoint,
    said: Rc<RefCell<Vec<Piece>>>,
}

impl Recorder {
    fn keep(&self, piece: Piece) {
        let mut said = self.said.borrow_mut();
        if said.len() < STOCK_MAX && !said.contains(&piece) {
            said.push(piece);
        }
    }
}

impl Endpoint for Recorder {
    isles_transport::forward_to!(endpoint:
        here, places, limits, shares_processors, progress, take_next, is_ready, is_sending, wait_with, unparker,
        is_dead, declare_dead, death, leave, other_hosts
    );

    fn send(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        room: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> std::result::Result<(), SendError> {
        let mut bytes = Vec::new();
        self.endpoint.send(to, class, handler, room, &mut |room| {
            let len = fill(room)?;
            bytes = room[..len].to_vec();
            Some(len)
        })?;
        self.keep(Piece { class, handler: handler.0, is_block: false, bytes });
        Ok(())
    }

    fn send_block(
        &self,
        to: PlaceId,
        class: Class,
        handler: HandlerId,
        len: usize,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> std::result::Result<(), SendError> {
        let mut bytes = Vec::new();
        self.endpoint.send_block(to, class, handler, len, &mut |room| {
            fill(room);
            bytes = room.to_vec();
        })?;
        self.keep(Piece { class, handler: handler.0, is_block: true, bytes });
        Ok(())
    }

    fn work_model(&self) -> Option<&dyn WorkModel> {
        None
    }

    fn span_sink(&self) -> Option<&dyn SpanSink> {
        None
    }

    /// None: what it sends is to be heard by one place after the other.
    fn multicast(&self) -> Option<&dyn Multicast> {
        None
    }

    fn shared_memory(&self) -> Option<&dyn MappedMemory> {
        None
    }

    fn lending(&self) -> Option<&dyn Lending> {
        None
    }
}

thread_local! {
    static STOCK: Stock = Stock::gather();
}

/// Returns the number of genuine messages, and of the handlers they name; only the test asks.
#[cfg(not(fuzzing))]
pub fn stock() -> (usize, usize) {
    STOCK.with(|stock| {
        let handlers: std::collections::BTreeSet<u16> = stock.0.iter().map(|piece| piece.handler).collect();
        (stock.0.len(), handlers.len())
    })
}

/// Says a message of `bytes` in `class` to a place that waits for its peer; returns the error of the finish that does.
#[cfg(not(fuzzing))]
pub fn awaits_peer_that_says(class: Class, handler: u16, bytes: &[u8]) -> Option<Error> {
    STOCK.with(|_| ());
    let conversation = Conversation::begin();
    // Nobody else is left to be asked.
    (2..PLACES).for_each(|place| conversation.world.kill(PlaceId(place)));
    conversation.settle();
    let error = Rc::new(RefCell::new(None::<Error>));
    let slot = Rc::clone(&error);
    let waits = async move {
        let peer = here().next();
        let result = finish(async move {
            spawn_at!(peer, {});
        });
        slot.replace(result.await.err());
        Ok::<_, Error>(())
    };
    let root = conversation.local.enter(|| MainTask::start(&conversation.local, waits));
    conversation.settle();
    conversation.hear();
    conversation.say(0, &Piece { class, handler, is_block: false, bytes: bytes.to_vec() });
    assert_eq!(root.is_over(), error.borrow().is_some(), "a finish ends with an error or goes on waiting");
    assert!(conversation.works(), "the place does not run its own tasks any more");
    drop(root);
    error.take()
}

/// Has a peer hand on a task of a finish whose home has died; returns whether that peer still lives.
#[cfg(not(fuzzing))]
pub fn hands_on_a_task_of_the_dead() -> bool {
    STOCK.with(|_| ());
    let conversation = Conversation::begin();
    let (dead, peer) = (PlaceId(2), PlaceId(1));
    conversation.world.kill(dead);
    conversation.settle();
    let bytes = [[0; 8].as_slice(), &dead.0.to_le_bytes(), &[0; 12]].concat();
    conversation.say(0, &Piece { class: Class::Data, handler: 0, is_block: false, bytes });
    conversation.world.is_alive(peer)
}

/// Reads an input byte by byte; zero after its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Takes the number of bytes that the next one states, or all that are left.
    fn bytes(&mut self) -> Vec<u8> {
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        bytes.to_vec()
    }

    /// The next thing that is said.
    fn piece(&mut self) -> Piece {
        let first = self.byte();
        let class = if first & CONTROL == 0 { Class::Data } else { Class::Control };
        if first & FROM_STOCK == 0 {
            let (handler, is_block) = (u16::from(first & 0x1f), first & AS_BLOCK != 0);
            return Piece { class, handler, is_block, bytes: self.bytes() };
        }
        let number = usize::from(self.byte());
        let mut piece = STOCK.with(|stock| stock.0[number % stock.0.len()].clone());
        piece.is_block |= first & AS_BLOCK != 0;
        for _ in 0..first & 7 {
            let (position, value) = (usize::from(self.byte()), self.byte());
            if let Some(byte) = piece.bytes.get_mut(position) {
                *byte = value;
            }
        }
        if first & 8 != 0 {
            piece.bytes.truncate(usize::from(self.byte()));
        }
        if first & 16 != 0 {
            let more = self.bytes();
            piece.bytes.extend(more);
        }
        piece
    }
}

/// Says to a place what `input` means.
///
/// # Panics
/// If the place does not go on working.
pub fn hold(input: &[u8]) {
    // The stock is gathered in a conversation of its own, so before this one.
    STOCK.with(|_| ());
    let conversation = Conversation::begin();
    let mut script = Script(input);
    while !script.0.is_empty() {
        let source = script.byte();
        if source == DEATH {
            conversation.world.kill(PlaceId(1 + u32::from(script.byte()) % (PLACES - 1)));
            conversation.settle();
        } else {
            conversation.say(usize::from(source), &script.piece());
        }
        conversation.hear();
    }
    assert!(conversation.works(), "the place does not run its own tasks any more");
}
