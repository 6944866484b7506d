//! The address of a database: `scheme://[user[:password]@]host[:port]/database[?option=value]`, or
//! `sqlite:path`. Passwords go to the database and nowhere else.

use crate::error::{Error, ErrorKind, Result};
use crate::near::near_names_hint;
use crate::source::registry::unescaped;
use std::fmt;

/// Stands where a password was.
const HIDDEN: &str = "***";

/// What kind of database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    MySql,
    Sqlite,
}

const SCHEMES: [(&str, Dialect); 5] = [
    ("postgres", Dialect::Postgres),
    ("postgresql", Dialect::Postgres),
    ("mysql", Dialect::MySql),
    ("mariadb", Dialect::MySql),
    ("sqlite", Dialect::Sqlite),
];

impl Dialect {
    fn scheme(self) -> &'static str {
        match self {
            Dialect::Postgres => "postgres",
            Dialect::MySql => "mysql",
            Dialect::Sqlite => "sqlite",
        }
    }

    fn port(self) -> u16 {
        if self == Dialect::Postgres { 5432 } else { 3306 }
    }

    /// Options that an address may have.
    fn options(self) -> &'static [&'static str] {
        match self {
            Dialect::Postgres => &["host", "sslmode", "sslrootcert", "sslcert", "sslkey"],
            Dialect::MySql => &["socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key"],
            Dialect::Sqlite => &[],
        }
    }
}

/// Whether a source is a database rather than a file.
pub fn is_address(text: &str) -> bool {
    split(text).is_some()
}

fn split(text: &str) -> Option<(Dialect, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let dialect = SCHEMES.iter().find(|(s, _)| *s == scheme)?.1;
    (dialect == Dialect::Sqlite || rest.starts_with("//")).then_some((dialect, rest))
}

/// Where a database is and who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub dialect: Dialect,
    pub host: String,
    pub port: u16,
    pub user: Option<String>,
    pub password: Option<String>,
    /// Name of the database, or path of the file.
    pub database: String,
    pub options: Vec<(String, String)>,
    /// Spellings of the password that must not be shown.
    secrets: Vec<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.shown())
    }
}

impl Address {
    /// Reads an address; `password` wins over the one in it.
    ///
    /// # Errors
    /// `Usage`; never shows any part of the address that may be a password.
    pub fn parse(text: &str, password: Option<&str>) -> Result<Address> {
        let Some((dialect, rest)) = split(text) else {
            return Err(Error::usage("this is no address of a database")
                .hint("write postgres://user@host/database, mysql://user@host/database or sqlite:path"));
        };
        let mut address = Address {
            dialect,
            host: String::new(),
            port: dialect.port(),
            user: None,
            password: None,
            database: String::new(),
            options: Vec::new(),
            secrets: Vec::new(),
        };
        if dialect == Dialect::Sqlite {
            return address.sqlite(rest);
        }
        address.server(&rest[2..])?;
        if let Some(password) = password {
            address.password = Some(password.to_owned());
        }
        address.secrets.extend(address.password.clone());
        address.secrets.retain(|s| !s.is_empty());
        Ok(address)
    }

    fn sqlite(mut self, rest: &str) -> Result<Address> {
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        // A mode is accepted for those who copy an address; nothing is ever written.
        if !options.is_empty() && options != "mode=ro" {
            return Err(Error::usage("an address of SQLite has no options").hint("write sqlite:path"));
        }
        self.database = unescaped(path);
        if self.database.is_empty() || self.database.starts_with(':') {
            return Err(Error::usage("the address names no file").hint("write sqlite:path"));
        }
        Ok(self)
    }

    fn server(&mut self, rest: &str) -> Result<()> {
        let scheme = self.dialect.scheme();
        let wrong = |what: &str| {
            Error::usage(format!("the address of the database {what}")).hint(format!(
                "write {scheme}://user@host:port/database; @, :, / and ? in a name or password are %40, %3A, %2F and %3F"
            ))
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        // A password with a slash would end up in the name of the database.
        if database.contains(['@', '/']) {
            return Err(wrong("has a / too many"));
        }
        let (who, place) = server.rsplit_once('@').map_or((None, server), |(w, p)| (Some(w), p));
        if let Some(who) = who {
            let (user, password) = who.split_once(':').map_or((who, None), |(u, p)| (u, Some(p)));
            self.user = (!user.is_empty()).then(|| unescaped(user));
            self.secrets.extend(password.map(str::to_owned));
            self.password = password.map(unescaped);
            self.secrets.extend(self.password.clone());
        }
        let (host, port) = match place.rfind(':').filter(|at| !place[*at..].contains(']')) {
            Some(at) => (&place[..at], Some(&place[at + 1..])),
            None => (place, None),
        };
        if let Some(port) = port {
            self.port = port.parse().map_err(|_| wrong("has a port that is no number"))?;
        }
        self.host = unescaped(host.trim_start_matches('[').trim_end_matches(']'));
        if self.host.is_empty() {
            self.host = "localhost".to_owned();
        }
        self.database = unescaped(database);
        if self.database.is_empty() {
            return Err(wrong("names no database"));
        }
        self.read_options(options)
    }

    fn read_options(&mut self, text: &str) -> Result<()> {
        for option in text.split('&').filter(|o| !o.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let known = self.dialect.options();
            if !known.contains(&name) {
                // Its value may be a password.
                return Err(Error::usage(format!(
                    "the address of the database has an unknown option {name}"
                ))
                .hint(near_names_hint(name, known.iter().copied())));
            }
            self.options.push((name.to_owned(), unescaped(value)));
        }
        Ok(())
    }

    /// The database without a secret.
    pub fn shown(&self) -> String {
        let Address { dialect, host, port, database, .. } = self;
        match dialect {
            Dialect::Sqlite => format!("sqlite:{}", database.strip_prefix("./").unwrap_or(database)),
            _ if host.contains(':') => format!("{}://[{host}]:{port}/{database}", dialect.scheme()),
            _ => format!("{}://{host}:{port}/{database}", dialect.scheme()),
        }
    }

    /// A text without the password.
    pub fn redacted(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.secrets {
            out = out.replace(secret, HIDDEN);
        }
        out
    }

    /// A failure of this database.
    pub fn failure(&self, what: &str) -> Error {
        Error::new(ErrorKind::Source, format!("{}: {}", self.shown(), self.redacted(what)))
    }
}
