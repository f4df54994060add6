//! Oxigraph over the queries of LUBM, for `isles bench rdf`: `oxigraph FILE.nt REPETITIONS`.
//!
//! Prints figures in the form that the bench reads: millions of triples loaded a second, in the faster of two ways, and
//! the geometric mean of the least times of the queries. A query is parsed, planned, evaluated, and each solution is
//! taken with its terms, because that is what a program gets of it.

use oxigraph::io::RdfFormat;
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// The queries of the benchmark.
const QUERIES: [&str; 14] = [
    include_str!("../data/lubm/q01.rq"),
    include_str!("../data/lubm/q02.rq"),
    include_str!("../data/lubm/q03.rq"),
    include_str!("../data/lubm/q04.rq"),
    include_str!("../data/lubm/q05.rq"),
    include_str!("../data/lubm/q06.rq"),
    include_str!("../data/lubm/q07.rq"),
    include_str!("../data/lubm/q08.rq"),
    include_str!("../data/lubm/q09.rq"),
    include_str!("../data/lubm/q10.rq"),
    include_str!("../data/lubm/q11.rq"),
    include_str!("../data/lubm/q12.rq"),
    include_str!("../data/lubm/q13.rq"),
    include_str!("../data/lubm/q14.rq"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(repetitions)) = (arguments.next(), arguments.next()) else {
        return Err("oxigraph FILE.nt REPETITIONS".into());
    };
    let bytes = std::fs::read(file)?;
    let begin = Instant::now();
    let store = Store::new()?;
    store.load_from_slice(RdfFormat::NTriples, &bytes)?;
    let mut seconds = begin.elapsed().as_secs_f64();
    let triples = store.len()?;
    let begin = Instant::now();
    let other = Store::new()?;
    let mut loader = other.bulk_loader();
    loader.parallel_load_from_slice(RdfFormat::NTriples, &bytes)?;
    loader.commit()?;
    seconds = seconds.min(begin.elapsed().as_secs_f64());
    drop(other);
    println!("version oxigraph 0.5.13, in memory");
    println!("measured load_rate {}", triples as f64 / seconds / 1e6);
    println!("measured load_ms {}", seconds * 1e3);
    let mut logarithms = 0.0;
    for (number, text) in QUERIES.iter().enumerate() {
        let mut least = f64::INFINITY;
        for _ in 0..repetitions.parse::<u32>()? {
            let begin = Instant::now();
            let rows = solutions(&store, text)?;
            least = least.min(begin.elapsed().as_secs_f64());
            black_box(rows);
        }
        println!("measured q{:02}_ms {}", number + 1, least * 1e3);
        println!("measured q{:02}_rows {}", number + 1, solutions(&store, text)?);
        logarithms += least.ln();
    }
    println!("measured mean_ms {}", (logarithms / QUERIES.len() as f64).exp() * 1e3);
    Ok(())
}

/// Returns the number of solutions of a query.
fn solutions(store: &Store, text: &str) -> Result<usize, Box<dyn Error>> {
    let results = SparqlEvaluator::new().parse_query(text)?.on_store(store).execute()?;
    let QueryResults::Solutions(solutions) = results else { return Err("no solutions".into()) };
    let mut rows = 0;
    for solution in solutions {
        black_box(solution?);
        rows += 1;
    }
    Ok(rows)
}
