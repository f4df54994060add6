//! Answers in the formats of SPARQL and RDF, and as a text table.
//!
//! `sparesults` and `oxrdfio` do the formatting; this module selects the contents. It evaluates nothing. Invariant:
//! the output depends on the answer only.

use crate::answer::{Answer, Solutions, triple};
use clap::ValueEnum;
use oxrdf::{Term, Variable};
use oxrdfio::{RdfFormat, RdfSerializer};
use serde::Serialize;
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Format of answers. All formats write triples as N-Triples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ResultForm {
    /// A text table.
    Table,
    /// SPARQL 1.1 Query Results JSON.
    Json,
    /// SPARQL 1.1 Query Results CSV.
    Csv,
    /// SPARQL 1.1 Query Results TSV.
    Tsv,
    /// SPARQL Query Results XML.
    Xml,
}

impl ResultForm {
    fn of_results(self) -> QueryResultsFormat {
        match self {
            ResultForm::Json => QueryResultsFormat::Json,
            ResultForm::Tsv => QueryResultsFormat::Tsv,
            ResultForm::Xml => QueryResultsFormat::Xml,
            ResultForm::Table | ResultForm::Csv => QueryResultsFormat::Csv,
        }
    }
}

/// Writes an answer.
///
/// # Errors
/// Errors of `out`.
pub fn write(answer: &Answer, format: ResultForm, out: &mut dyn Write) -> io::Result<()> {
    let serializer = QueryResultsSerializer::from_format(format.of_results());
    match (answer, format) {
        (Answer::Graph(triples), _) => {
            let mut writer = RdfSerializer::from_format(RdfFormat::NTriples).for_writer(out);
            for triple in triples.iter().filter_map(triple) {
                writer.serialize_triple(&triple)?;
            }
            writer.finish().map(drop)
        }
        (answer, ResultForm::Table) => writeln!(out, "{}", table(answer, usize::MAX)),
        // CSV has no form for a boolean result.
        (Answer::Boolean(truth), _) => {
            serializer.serialize_boolean_to_writer(&mut *out, *truth)?;
            writeln!(out)
        }
        (Answer::Solutions(solutions), _) => {
            let variables: Vec<Variable> = solutions.variables.iter().map(Variable::new_unchecked).collect();
            let mut writer = serializer.serialize_solutions_to_writer(&mut *out, variables.clone())?;
            for row in 0..solutions.rows {
                let terms: Vec<Option<Term>> = solutions.row(row).collect();
                let bound = variables.iter().zip(&terms);
                writer.serialize(bound.filter_map(|(variable, term)| Some((variable, term.as_ref()?))))?;
            }
            writer.finish()?;
            if format == ResultForm::Json || format == ResultForm::Xml { writeln!(out) } else { Ok(()) }
        }
    }
}

/// Formats an answer for people, with at most `most` rows and no line feed at its end.
pub fn table(answer: &Answer, most: usize) -> String {
    match answer {
        Answer::Boolean(truth) => if *truth { "yes" } else { "no" }.to_owned(),
        Answer::Graph(triples) => {
            let lines = triples.iter().filter_map(triple).take(most).map(|triple| format!("{triple} ."));
            with_rest(lines.collect::<Vec<_>>().join("\n"), triples.len(), most)
        }
        Answer::Solutions(solutions) => {
            with_rest(columns(solutions, solutions.rows.min(most)), solutions.rows, most)
        }
    }
}

fn with_rest(mut text: String, rows: usize, most: usize) -> String {
    if let Some(others) = rows.checked_sub(most).filter(|others| *others > 0) {
        let _ = write!(text, "\n{others} more; --format csv writes all");
    }
    text
}

fn columns(solutions: &Solutions, rows: usize) -> String {
    let cell = |row: usize, column: usize| {
        let bytes = solutions.bytes(row, column);
        bytes.map_or_else(String::new, |bytes| crate::store::term::decode(bytes).to_string())
    };
    let cells: Vec<Vec<String>> = (0..solutions.variables.len())
        .map(|column| {
            let head = format!("?{}", solutions.variables[column]);
            std::iter::once(head).chain((0..rows).map(|row| cell(row, column))).collect()
        })
        .collect();
    let widths = cells.iter().map(|column| column.iter().map(|text| text.chars().count()).max().unwrap_or(0));
    let widths: Vec<usize> = widths.collect();
    let line = |row: usize| {
        let mut text = String::new();
        for (column, width) in cells.iter().zip(&widths) {
            let _ = write!(text, "{:<width$}  ", column[row]);
        }
        text.trim_end().to_owned()
    };
    (0..=rows).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::TermList;

    fn solutions() -> Answer {
        let mut terms = TermList::default();
        let one = terms.push(b"ihttp://a.example/x") + 1;
        let other = terms.push(b"sa \"b\", c") + 1;
        let columns = vec![vec![one, one], vec![0, other]];
        let variables = vec!["s".to_owned(), "o".to_owned()];
        Answer::Solutions(Solutions { variables, rows: 2, columns, terms, is_ordered: false })
    }

    fn written(answer: &Answer, format: ResultForm) -> String {
        let mut out = Vec::new();
        write(answer, format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn solutions_are_written_in_each_format() {
        let answer = solutions();
        assert_eq!(
            written(&answer, ResultForm::Csv),
            "s,o\r\nhttp://a.example/x,\r\nhttp://a.example/x,\"a \"\"b\"\", c\"\r\n"
        );
        assert_eq!(
            written(&answer, ResultForm::Tsv),
            "?s\t?o\n<http://a.example/x>\t\n<http://a.example/x>\t\"a \\\"b\\\", c\"\n"
        );
        let json = written(&answer, ResultForm::Json);
        assert!(json.contains(r#""vars":["s","o"]"#) && json.contains(r#""type":"literal""#), "{json}");
        assert!(written(&answer, ResultForm::Xml).contains("<uri>http://a.example/x</uri>"));
        let table =
            "?s                    ?o\n<http://a.example/x>\n<http://a.example/x>  \"a \\\"b\\\", c\"\n";
        assert_eq!(written(&answer, ResultForm::Table), table);
        assert!(super::table(&answer, 1).ends_with("\n1 more; --format csv writes all"));
    }

    #[test]
    fn truth_values_and_triples_are_written_too() {
        assert_eq!(written(&Answer::Boolean(true), ResultForm::Table), "yes\n");
        assert!(written(&Answer::Boolean(false), ResultForm::Json).contains("\"boolean\":false"));
        let triple = [b"ihttp://a.example/x".to_vec(), b"ihttp://a.example/p".to_vec(), b"sv".to_vec()];
        let graph = Answer::Graph([triple].into());
        assert_eq!(written(&graph, ResultForm::Csv), "<http://a.example/x> <http://a.example/p> \"v\" .\n");
    }
}
