fn main() {
    use isles_hypervisor::*;
    use std::time::Instant;
    let t = Instant::now();
    let mut g = Guest::new("place 7").unwrap();
    println!("made {:?}", t.elapsed());
    let t = Instant::now();
    let r = g.run(|_| 41 + 1);
    println!("first {:?} {r} {:?}", t.elapsed(), g.counts());
    let t = Instant::now();
    g.run(|c| {
        println!("hello from guest {:?} {:?}", std::thread::current().id(), std::time::SystemTime::now());
        let t = Instant::now();
        for _ in 0..100 { c.nothing() }
        println!("null {:?}", t.elapsed() / 100);
        let t = Instant::now();
        for _ in 0..1000 { std::hint::black_box(std::process::id()); }
        println!("getpid {:?}", t.elapsed() / 1000);
        let t = Instant::now();
        for _ in 0..100 { rustix::process::getppid(); }
        println!("getppid {:?}", t.elapsed() / 100);
        let v: Vec<u64> = (0..10_000_000).collect();
        println!("sum {}", v.iter().sum::<u64>());
        let h: Vec<_> = (0..4).map(|i| std::thread::spawn(move || { println!("thread {i}"); i * 2 })).collect();
        println!("{:?}", h.into_iter().map(|h| h.join().unwrap()).collect::<Vec<_>>());
        let o = std::process::Command::new("echo").arg("child").output();
        println!("{o:?}");
    });
    println!("{:?} {:?}", t.elapsed(), g.counts());
    let p = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| g.run(|_| { if true { panic!("boo") } })));
    println!("{:?}", p.is_err());
    if std::env::args().any(|a| a == "null") { g.run(|_| unsafe { *(16 as *mut u32) = 1 }); }
    if std::env::args().any(|a| a == "deep") { fn f(n: u64) -> u64 { let a = [n; 1000]; if n == 0 { 0 } else { f(n - 1) + std::hint::black_box(a)[5] } } g.run(|_| f(1 << 30)); }
}
