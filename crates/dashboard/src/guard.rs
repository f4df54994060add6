//! The guard of requests: their host, origin and session.
//!
//! The loopback address alone is no protection: pages of any site can send requests to it, and other users of the host
//! can connect. So the `Host` must be ours (against DNS rebinding), a browser must state that the request is
//! same-origin (cookies ignore ports), and a request must have the token or the session that it was exchanged for.
//! Invariants: requests are refused before routing; a token is never part of a requested address.

use crate::answer::{Answer, problem};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, StatusCode};
use std::fmt::Write as _;
use subtle::ConstantTimeEq;

/// Bytes of a token and of a session: 256 bits.
const SECRET_BYTES: usize = 32;

/// Maximum bytes of a path and query.
const ADDRESS_BYTES_MAX: usize = 4096;

/// Credentials that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// None: the files of the page itself.
    Public,
    /// The token, to exchange for a session.
    Token,
    /// The token or a session, for reading.
    View,
    /// The token or a session of a manager.
    Control,
}

/// Role of a client; the second includes the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Read-only.
    View,
    /// Control jobs.
    Control,
}

impl Role {
    /// Returns the role's name in the interface.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Control => "control",
        }
    }
}

/// Credentials of a role.
#[derive(Debug)]
struct Secrets {
    role: Role,
    /// The page exchanges it for a session; a program sends it with each request.
    token: String,
    session: String,
}

/// Returns a random number in hexadecimal.
pub(crate) fn secret() -> Result<String, String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a text takes whatever is written
        text
    }))
}

/// Checks requests: the credentials and names that the server accepts.
#[derive(Debug)]
pub(crate) struct Guard {
    secrets: Vec<Secrets>,
    /// A name of this server that no other has: `isles-RANDOM.localhost`.
    name: String,
    port: u16,
    /// Maximum bytes of the body of a request.
    body_bytes_max: u64,
}

impl Guard {
    /// Creates the guard of a server at this port, with a manager role if `is_controlled`, and bodies of at most
    /// `body_bytes_max` bytes.
    pub(crate) fn new(port: u16, is_controlled: bool, body_bytes_max: u64) -> Result<Guard, String> {
        let name = format!("isles-{}.localhost", &secret()?[..12]);
        let roles = [Role::View, Role::Control].into_iter().take(1 + usize::from(is_controlled));
        let secrets = roles.map(|role| Ok(Secrets { role, token: secret()?, session: secret()? }));
        Ok(Guard { secrets: secrets.collect::<Result<_, String>>()?, name, port, body_bytes_max })
    }

    /// Returns the addresses to open with the most powerful role: by the server's unique name, and by number.
    pub(crate) fn addresses(&self) -> [String; 2] {
        self.addresses_for(self.secrets.last())
    }

    /// Returns the read-only addresses, if there is a manager role.
    pub(crate) fn view_addresses(&self) -> Option<[String; 2]> {
        (self.secrets.len() > 1).then(|| self.addresses_for(self.secrets.first()))
    }

    /// Returns the address by number, and the read-only token.
    pub(crate) fn endpoint(&self) -> (String, &str) {
        let token = self.secrets.first().map_or("", |secrets| secrets.token.as_str());
        (format!("http://127.0.0.1:{}", self.port), token)
    }

    fn addresses_for(&self, secrets: Option<&Secrets>) -> [String; 2] {
        let token = secrets.map_or("", |secrets| secrets.token.as_str());
        [&self.name, "127.0.0.1"].map(|host| format!("http://{host}:{}/#token={token}", self.port))
    }

    /// Returns the cookie of the session for the token of a request, named by the port, because cookies ignore ports.
    pub(crate) fn cookie(&self, headers: &HeaderMap) -> Option<String> {
        let session = &self.secrets.iter().find(|secrets| has_token(headers, secrets))?.session;
        Some(format!("{}={session}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name()))
    }

    fn cookie_name(&self) -> String {
        format!("isles-{}", self.port)
    }

    /// Checks the requirements on any request.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn check_origin<B>(
        &self,
        request: &Request<B>,
        access: Option<Access>,
    ) -> Result<(), Box<Answer>> {
        let headers = request.headers();
        let host = only(headers, &header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.is_own(host) {
            let detail =
                "the name in the address is not one of this server; open the address that was printed";
            return refuse(StatusCode::MISDIRECTED_REQUEST, "unknown host", detail);
        }
        let address = request.uri().path_and_query().map_or(0, |address| address.as_str().len());
        if address > ADDRESS_BYTES_MAX {
            return refuse(
                StatusCode::URI_TOO_LONG,
                "the address is too long",
                "at most 4096 bytes are allowed",
            );
        }
        let length =
            only(headers, &header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if length.unwrap_or(0) > self.body_bytes_max {
            let detail = format!("at most {} KiB are allowed", self.body_bytes_max >> 10);
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long", &detail);
        }
        let other_site = "requests from other sites and other ports are refused";
        if headers.contains_key(header::ORIGIN) {
            let own = format!("http://{host}");
            if only(headers, &header::ORIGIN).is_none_or(|origin| origin.as_bytes() != own.as_bytes()) {
                return refuse(StatusCode::FORBIDDEN, "another origin", other_site);
            }
        }
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        let is_page = access == Some(Access::Public) && is_read;
        match site(headers) {
            None | Some("same-origin") => Ok(()),
            Some("none") if is_page => Ok(()),
            // A link from another page: the document has no secret, and authenticates itself.
            Some(_) if is_page && request.uri().path() == "/" && is_navigation(headers) => Ok(()),
            Some(_) => refuse(StatusCode::FORBIDDEN, "another site", other_site),
        }
    }

    /// Checks the credentials of a request.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn check_access(&self, headers: &HeaderMap, access: Access) -> Result<(), Box<Answer>> {
        let role = self.role(headers);
        let is_allowed = match access {
            Access::Public => true,
            Access::Token => self.secrets.iter().any(|secrets| has_token(headers, secrets)),
            Access::View => role.is_some(),
            Access::Control => role == Some(Role::Control),
        };
        if is_allowed {
            return Ok(());
        }
        if role.is_some() && access == Access::Control {
            let detail = "this address is read-only; open the one printed for managing the run";
            return refuse(StatusCode::FORBIDDEN, "no right to change anything", detail);
        }
        let detail = "open the address that was printed when the run began, with its token; it is also in the file \
                      ui-address of the run directory";
        refuse(StatusCode::UNAUTHORIZED, "no session", detail)
    }

    /// Returns the role of a request that has a token, or the session for which the page has exchanged one.
    pub(crate) fn role(&self, headers: &HeaderMap) -> Option<Role> {
        // A browser also sends cookies for pages of other ports; only this value proves that it is our page.
        let is_own_page = site(headers) == Some("same-origin");
        let has_shown = |secrets: &&Secrets| {
            has_token(headers, secrets) || (is_own_page && self.has_session(headers, secrets))
        };
        self.secrets.iter().filter(has_shown).map(|secrets| secrets.role).max()
    }

    /// Returns `true` if a value of `Host` is a name of this server.
    fn is_own(&self, host: &str) -> bool {
        let Some((name, port)) = host.rsplit_once(':') else { return false };
        let names = ["127.0.0.1", "localhost", "[::1]", self.name.as_str()];
        port.parse() == Ok(self.port) && names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn has_session(&self, headers: &HeaderMap, secrets: &Secrets) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter();
        let mut pairs = cookies.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs.any(|pair| {
            let known = pair.trim().split_once('=').filter(|(known, _)| *known == name);
            known.is_some_and(|(_, session)| is_same(session.as_bytes(), &secrets.session))
        })
    }
}

fn has_token(headers: &HeaderMap, secrets: &Secrets) -> bool {
    let value = only(headers, &header::AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    // RFC 9110, 11.1 and 11.4: the name of a scheme is case-insensitive, and one or more spaces follow it.
    let end = value.iter().position(|byte| *byte == b' ').unwrap_or(value.len());
    let (scheme, rest) = value.split_at(end);
    scheme.eq_ignore_ascii_case(b"Bearer") && is_same(rest.trim_ascii_start(), &secrets.token)
}

/// Returns the browser's statement about the requesting site.
fn site(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all("sec-fetch-site");
    let mut values = all.iter().map(|value| value.to_str().unwrap_or("?"));
    let first = values.next()?;
    if values.next().is_some() { Some("?") } else { Some(first) }
}

/// Returns `true` if the browser will show the answer as a page of its own, not within another page or to a script.
fn is_navigation(headers: &HeaderMap) -> bool {
    let is =
        |name: &HeaderName, word: &[u8]| only(headers, name).is_some_and(|value| value.as_bytes() == word);
    is(&HeaderName::from_static("sec-fetch-mode"), b"navigate")
        && is(&HeaderName::from_static("sec-fetch-dest"), b"document")
}

/// Returns the value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    values.next().is_none().then_some(first)
}

/// Compares in constant time.
fn is_same(given: &[u8], secret: &str) -> bool {
    given.ct_eq(secret.as_bytes()).into()
}

fn refuse(status: StatusCode, title: &str, detail: &str) -> Result<(), Box<Answer>> {
    Err(Box::new(problem(status, title, detail)))
}
