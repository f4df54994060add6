//! Answers requests over all places, one at a time.
//!
//! It reads no request itself. Invariant: all places answer the same queries in the same order; a faulty or too
//! expensive query ends only itself.

use crate::answer::Answer;
use crate::load::Loaded;
use crate::queries::NamedQuery;
use crate::requests::{FaultKind, QueryRequest, Reply, Requests};
use crate::results::{self, ResultForm};
use crate::session::Session;
use isles::prelude::*;
use isles_app::frame::{RunMeter, add_done};
use std::time::Instant;

/// The forms of solutions and of a truth value, with their media types; the first is the default.
const RESULT_FORMS: [(&str, ResultForm); 4] = [
    ("application/sparql-results+json", ResultForm::Json),
    ("application/sparql-results+xml", ResultForm::Xml),
    ("text/csv", ResultForm::Csv),
    ("text/tab-separated-values", ResultForm::Tsv),
];

/// The forms of triples, which are all N-Triples, a subset of Turtle.
const GRAPH_FORMS: [(&str, ResultForm); 2] =
    [("application/n-triples", ResultForm::Csv), ("text/turtle", ResultForm::Csv)];

/// Returns the preferred form of an answer among the accepted media types; the default one if none are listed.
fn form(answer: &Answer, accept: &[String]) -> Option<(&'static str, ResultForm)> {
    let forms: &[(&'static str, ResultForm)] = match answer {
        Answer::Solutions(_) => &RESULT_FORMS,
        Answer::Boolean(_) => &RESULT_FORMS[..2], // the other two have no form for it
        Answer::Graph(_) => &GRAPH_FORMS,
    };
    let fits = |media: &str, wanted: &str| match wanted.strip_suffix('*') {
        Some("*/") => true,
        Some(begin) => media.starts_with(begin),
        None => media.eq_ignore_ascii_case(wanted),
    };
    if accept.is_empty() {
        return forms.first().copied();
    }
    accept.iter().find_map(|wanted| forms.iter().find(|(media, _)| fits(media, wanted))).copied()
}

/// Returns the reply to a client for an answer.
fn reply(answer: &Answer, request: &QueryRequest) -> Reply {
    let Some((media, form)) = form(answer, &request.accept) else {
        let text = format!("no format of the answer is one of {}", request.accept.join(", "));
        return Reply::Fault(FaultKind::Form, text);
    };
    let mut bytes = Vec::new();
    match results::write(answer, form, &mut bytes) {
        Ok(()) => Reply::Answer(media, bytes),
        Err(error) => Reply::Fault(FaultKind::Form, error.to_string()),
    }
}

impl Session {
    /// Answers requests from the standard input of the first place; all places call it.
    ///
    /// # Errors
    /// Standard input is not a socket, or a place has died.
    pub(crate) async fn serve(&self, team: &Team, loaded: &Loaded, meter: &RunMeter) -> isles::Result<()> {
        if team.rank() != 0 {
            while let Some(query) = team.broadcast::<Option<NamedQuery>>(0, None).await? {
                self.answer(&query, loaded).await?;
            }
            return Ok(());
        }
        let requests = match Requests::of_standard_input() {
            Ok(requests) => requests,
            Err(error) => {
                team.broadcast(0, Some(None::<NamedQuery>)).await?; // for which the others wait
                return Err(isles::Error::message(format!(
                    "--serve: standard input is not a socket ({error}); use isles serve-sparql"
                )));
            }
        };
        while let Some((request, client)) = requests.next().await {
            let begin = Instant::now();
            let query = NamedQuery {
                name: "request".to_owned(),
                text: request.query.clone(),
                base: None,
                dataset: request.dataset.clone(),
            };
            let reply = match query.parsed() {
                Ok(_) => self.replied(team, loaded, query, &request).await?,
                Err(wrong) => Reply::Fault(FaultKind::Query, wrong),
            };
            let _ = client.send(reply); // it may have gone
            meter.add_done(begin);
            add_done(1);
        }
        team.broadcast(0, Some(None::<NamedQuery>)).await?;
        Ok(())
    }

    async fn replied(
        &self,
        team: &Team,
        loaded: &Loaded,
        query: NamedQuery,
        request: &QueryRequest,
    ) -> isles::Result<Reply> {
        team.broadcast(0, Some(Some(query.clone()))).await?;
        let (found, answer) = self.answer(&query, loaded).await?;
        Ok(match (found.fault, answer) {
            (None, Some(mut answer)) => {
                answer.sort();
                reply(&answer, request)
            }
            (fault, _) => {
                Reply::Fault(found.fault_kind.unwrap_or(FaultKind::Limit), fault.unwrap_or_default())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Solutions;
    use std::collections::BTreeSet;

    #[test]
    fn an_answer_is_written_in_the_first_form_that_is_accepted() {
        let solutions = Answer::Solutions(Solutions::default());
        let (truth, graph) = (Answer::Boolean(true), Answer::Graph(BTreeSet::new()));
        let media = |answer: &Answer, accept: &[&str]| {
            let accept: Vec<String> = accept.iter().map(|word| (*word).to_owned()).collect();
            form(answer, &accept).map(|(media, _)| media)
        };
        assert_eq!(media(&solutions, &[]), Some("application/sparql-results+json"));
        assert_eq!(media(&solutions, &["text/html", "text/*"]), Some("text/csv"));
        assert_eq!(media(&solutions, &["TEXT/Tab-Separated-Values"]), Some("text/tab-separated-values"));
        assert_eq!(media(&truth, &["text/csv", "*/*"]), Some("application/sparql-results+json"));
        assert_eq!(media(&truth, &["text/csv"]), None);
        assert_eq!(media(&graph, &["application/*"]), Some("application/n-triples"));
        assert_eq!(media(&graph, &["text/turtle"]), Some("text/turtle"));
        assert_eq!(media(&graph, &["application/sparql-results+json"]), None);
    }
}
