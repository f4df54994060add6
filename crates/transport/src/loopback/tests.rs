//! Promises of the simulated world beyond the conformance suite: it is repeatable, varied and strict.

use super::*;
use crate::{
    Arrival, Body, Class, Endpoint, EndpointExt, HandlerId, Inbound, MappedMemory, Message, PlaceId,
    SendError,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

const A: PlaceId = PlaceId(0);
const B: PlaceId = PlaceId(1);
const C: PlaceId = PlaceId(2);

fn send(from: &dyn Endpoint, to: PlaceId, class: Class, text: &str) -> Result<(), SendError> {
    from.send(to, class, HandlerId(9), text.len(), &mut |room| {
        room.copy_from_slice(text.as_bytes());
        Some(text.len())
    })
}

/// Returns the arrivals of one call, as text: `source class bytes`, or `source died`.
fn arrivals(at: &dyn Endpoint, inbound: Inbound) -> Vec<String> {
    let mut seen = Vec::new();
    let count = at.progress(inbound, &mut |arrival| {
        seen.push(match arrival {
            Arrival::Died { place, .. } => format!("{} died", place.0),
            Arrival::Message(message) => {
                let text = String::from_utf8_lossy(message.body.bytes()).into_owned();
                format!("{} {:?} {text}", message.source.0, message.class)
            }
        });
    });
    assert_eq!(count, seen.len());
    seen
}

/// Lets three places send to each other for a while. Returns the arrivals at place 2 in order, and the world.
fn gossip(plan: Plan) -> (Vec<String>, World) {
    let world = World::new(3, plan);
    let endpoints: Vec<_> = [A, B, C].map(|place| world.endpoint(place)).into();
    let (mut seen, mut sent) = (Vec::new(), [0; 3]);
    let busy =
        |sent: &[u32; 3]| [A, B, C].iter().any(|place| world.is_alive(*place) && sent[place.index()] < 30);
    while busy(&sent) || world.in_flight() > 0 {
        let place = world.choose(&[A, B, C]).expect("two places stay alive");
        let class = if sent[place.index()].is_multiple_of(2) { Class::Control } else { Class::Data };
        let to = PlaceId((place.0 + 1 + sent[place.index()] / 2 % 2) % 3);
        let text = sent[place.index()].to_string();
        if sent[place.index()] < 30
            && send(&endpoints[place.index()], to, class, &text) != Err(SendError::Full)
        {
            sent[place.index()] += 1;
        }
        let news = arrivals(&endpoints[place.index()], Inbound::All);
        if place == C {
            seen.extend(news);
        }
    }
    (seen, world.clone())
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..50 {
        let mut plan = Plan::adversarial(seed);
        plan.losses = vec![PlannedDeath { place: B, step: 40 }];
        let ((seen, world), (again, world_again)) = (gossip(plan.clone()), gossip(plan));
        assert_eq!(seen, again, "seed {seed}");
        assert_eq!((world.digest(), world.step()), (world_again.digest(), world_again.step()), "seed {seed}");
    }
}

#[test]
fn other_seeds_give_other_orders() {
    let mut orders: Vec<_> = (0..50).map(|seed| gossip(Plan::adversarial(seed)).0).collect();
    assert!(orders.iter().all(|order| order.len() == orders[0].len()), "something was lost");
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 45, "only {} different orders", orders.len());
}

#[test]
fn the_digest_sees_the_bytes_of_a_message() {
    let digest = |text| {
        let world = World::new(2, Plan::calm(0));
        send(&world.endpoint(A), B, Class::Data, text).unwrap();
        world.digest()
    };
    assert_eq!(digest("abcdefgh1"), digest("abcdefgh1"));
    assert_ne!(digest("abcdefgh1"), digest("abcdefgh2"));
    assert_ne!(digest("a"), digest("a\0"));
}

#[test]
fn a_delayed_message_arrives_when_time_has_moved() {
    let mut plan = Plan::calm(3);
    plan.data.delay_steps = 100..=100;
    let world = World::new(2, plan);
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    send(&a, B, Class::Data, "late").unwrap();
    send(&a, B, Class::Control, "soon").unwrap();
    assert!(world.wakes(B) && !world.wakes(A));
    assert_eq!(arrivals(&b, Inbound::All), ["0 Control soon"]);
    assert!(!world.wakes(B));
    assert_eq!(world.in_flight(), 1);
    assert!(world.advance());
    assert_eq!((world.step(), world.wakes(B)), (100, true));
    assert_eq!(arrivals(&b, Inbound::Control), [""; 0]);
    assert_eq!(arrivals(&b, Inbound::All), ["0 Data late"]);
    assert!(!world.advance() && world.in_flight() == 0);
}

#[test]
fn a_refused_sender_is_woken_by_room_and_only_by_room() {
    let mut plan = Plan::calm(0);
    plan.data.capacity = 2;
    let world = World::new(3, plan);
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    send(&a, B, Class::Data, "1").unwrap();
    send(&a, B, Class::Data, "2").unwrap();
    assert_eq!(send(&a, B, Class::Data, "3"), Err(SendError::Full));
    assert_eq!(send(&a, B, Class::Control, "4"), Ok(()));
    assert_eq!(send(&a, C, Class::Data, "5"), Ok(()));
    assert!(!world.wakes(A));
    arrivals(&b, Inbound::All);
    assert!(world.wakes(A));
    world.choose(&[A]);
    assert!(!world.wakes(A), "a turn forgets earlier refusals");
}

#[test]
fn blocks_are_counted_until_they_are_dropped() {
    let mut plan = Plan::calm(0);
    plan.blocks_max = 1;
    let world = World::new(2, plan);
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    let block = || a.send_block(B, Class::Data, HandlerId(0), 1_000, &mut |bytes| bytes.fill(7));
    block().unwrap();
    let mut kept = None;
    b.progress(Inbound::All, &mut |arrival| {
        let Arrival::Message(message) = arrival else { return };
        let Body::Block(block) = message.body else { return };
        kept = Some(block);
    });
    let kept = kept.expect("a block");
    assert_eq!(kept.bytes(), [7; 1_000]);
    assert_eq!(kept.bytes().as_ptr().align_offset(64), 0);
    assert_eq!((block(), world.live_blocks(), world.wakes(A)), (Err(SendError::Full), 1, false));
    drop(kept);
    assert_eq!((world.live_blocks(), world.wakes(A)), (0, true));
    block().unwrap();
}

#[test]
fn a_killed_place_leaves_a_first_part_of_what_it_sent() {
    let mut lengths = [false; 6];
    for seed in 0..200 {
        let mut plan = Plan::calm(seed);
        plan.notice_steps = 10..=20;
        let world = World::new(2, plan);
        let (a, b) = (world.endpoint(A), world.endpoint(B));
        let all: Vec<String> = (0..5).map(|number| format!("1 Data {number}")).collect();
        (0..5).for_each(|number| send(&b, A, Class::Data, &number.to_string()).unwrap());
        world.kill(B);
        world.kill(B);
        assert!(!world.is_alive(B) && !a.is_dead(B));
        assert_eq!(send(&a, B, Class::Data, "into the void"), Ok(()));
        let mut seen = arrivals(&a, Inbound::All);
        lengths[seen.len()] = true;
        assert_eq!(seen, all[..seen.len()]);
        assert!(world.advance() && world.wakes(A) && a.is_dead(B));
        assert_eq!(send(&a, B, Class::Data, "known"), Err(SendError::DeadPlace(B)));
        seen = arrivals(&a, Inbound::Control);
        assert_eq!(seen, ["1 died"]);
        assert!(!world.wakes(A) && !world.advance() && world.in_flight() == 0);
    }
    assert_eq!(lengths, [true; 6], "each length of the first part comes up");
}

#[test]
fn the_news_of_a_death_waits_for_messages_of_both_classes() {
    let mut plan = Plan::calm(1);
    plan.data.delay_steps = 50..=50;
    let world = World::new(2, plan);
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    let mut late = 0;
    while late == 0 {
        send(&b, A, Class::Data, "last").unwrap();
        late = world.in_flight();
    }
    world.kill(B);
    let kept = world.in_flight() - 1;
    assert!(a.is_dead(B), "known at once in this plan");
    assert_eq!(arrivals(&a, Inbound::All).len(), usize::from(kept == 0));
    world.advance();
    assert_eq!(arrivals(&a, Inbound::Control).len(), 0, "the data message is still to come");
    assert_eq!(arrivals(&a, Inbound::All).last().map(String::as_str), (kept == 1).then_some("1 died"));
}

#[test]
fn a_cut_endpoint_hears_and_says_nothing() {
    let world = World::new(2, Plan::calm(0));
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    send(&a, B, Class::Data, "unread").unwrap();
    world.kill(B);
    assert!(arrivals(&b, Inbound::All).is_empty());
    assert_eq!(send(&b, A, Class::Data, "unsaid"), Err(SendError::DeadPlace(A)));
    assert!(!world.wakes(B));
    assert_eq!(world.choose(&[B]), None);
}

#[test]
fn what_a_dead_place_has_taken_is_its_sender_s_again() {
    let plan = Plan { blocks_max: 1, ..Plan::calm(1) };
    let world = World::new(2, plan);
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    let mut held = None;
    a.send_block(B, Class::Data, HandlerId(0), 9, &mut |_| ()).unwrap();
    while held.is_none() {
        world.advance();
        b.progress(Inbound::All, &mut |arrival| {
            if let Arrival::Message(Message { body: Body::Block(block), .. }) = arrival {
                held = Some(block);
            }
        });
    }
    assert_eq!(world.live_blocks(), 1);
    world.kill(B);
    while !a.is_dead(B) {
        world.advance();
        a.progress(Inbound::All, &mut |_| ());
    }
    world.advance();
    assert_eq!(world.live_blocks(), 0);
    drop(held);
    assert_eq!(world.live_blocks(), 0);
}

#[test]
fn the_end_of_a_place_that_has_left_loses_nothing_and_is_no_news() {
    for seed in 0..20 {
        let world = World::new(2, Plan::calm(seed));
        let (a, b) = (world.endpoint(A), world.endpoint(B));
        (0..5).for_each(|_| send(&b, A, Class::Data, "kept").unwrap());
        a.send_block(B, Class::Data, HandlerId(0), 9, &mut |_| ()).unwrap();
        b.leave();
        assert_eq!(send(&a, B, Class::Data, "refused"), Err(SendError::DeadPlace(B)));
        world.kill(B);
        assert_eq!(world.live_blocks(), 0, "what it will never take is freed");
        assert_eq!(arrivals(&a, Inbound::All), ["1 Data kept"; 5]);
        assert!(!a.is_dead(B) && world.in_flight() == 0);
    }
}

#[test]
fn planned_losses_happen_at_their_step() {
    let mut plan = Plan::calm(0);
    plan.losses = vec![PlannedDeath { place: B, step: 3 }, PlannedDeath { place: C, step: 1_000 }];
    let world = World::new(3, plan);
    let order: Vec<_> = (0..4).map(|_| world.choose(&[B])).collect();
    assert_eq!(order, [Some(B), Some(B), None, None]);
    assert_eq!((world.advance(), world.step()), (true, 3), "the death is news now");
    arrivals(&world.endpoint(A), Inbound::All);
    arrivals(&world.endpoint(C), Inbound::All);
    assert!(world.advance());
    assert_eq!((world.step(), world.is_alive(C)), (1_000, false));
}

#[test]
fn an_unpark_wakes_once() {
    let world = World::new(1, Plan::calm(0));
    let unparker = world.endpoint(A).unparker();
    std::thread::spawn(move || unparker.unpark()).join().unwrap();
    assert!(world.wakes(A));
    assert_eq!(world.choose(&[A]), Some(A));
    assert!(!world.wakes(A));
}

#[test]
fn words_are_offered_as_the_plan_says() {
    let mut plan = Plan::calm(0);
    let world = World::new(2, plan.clone());
    world.endpoint(A).word(B, 15).unwrap().store(5, Ordering::Relaxed);
    assert_eq!(world.endpoint(B).word(B, 15).unwrap().load(Ordering::Relaxed), 5);
    plan.words = 0;
    let world = World::new(2, plan);
    assert!(world.endpoint(A).shared_memory().is_none());
}

#[test]
fn calls_from_within_callbacks_are_assertions() {
    let world = World::new(2, Plan::calm(0));
    let (a, b) = (world.endpoint(A), world.endpoint(B));
    let nested = |call: &mut dyn FnMut()| catch_unwind(AssertUnwindSafe(call)).is_err();
    assert!(nested(&mut || {
        let _ =
            a.send(B, Class::Data, HandlerId(0), 1, &mut |_| send(&a, B, Class::Data, "x").ok().map(|()| 0));
    }));
    send(&b, A, Class::Data, "x").unwrap();
    send(&b, A, Class::Data, "y").unwrap();
    assert!(nested(&mut || {
        a.progress(Inbound::All, &mut |_| a.wait(None));
    }));
    assert_eq!(arrivals(&a, Inbound::All), ["1 Data y"], "a failed callback leaves the endpoint usable");
}

#[test]
fn unwritten_room_is_not_zero() {
    let world = World::new(2, Plan::calm(0));
    let mut unwritten = Vec::new();
    let sent = world.endpoint(A).send(B, Class::Data, HandlerId(0), 3, &mut |room| {
        unwritten = room.to_vec();
        None
    });
    assert_eq!((sent, unwritten.contains(&0), unwritten.len()), (Err(SendError::Abandoned), false, 3));
    assert_eq!(world.in_flight(), 0);
}
